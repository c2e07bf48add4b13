"""What every program here needs: errors, units, strict JSON, words for people."""
