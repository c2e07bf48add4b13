"""Programs that give evidence: planted faults, attacks, outages, a deployment, a missing Mac."""
