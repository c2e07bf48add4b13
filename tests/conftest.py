"""Settings every test shares."""

from hypothesis import HealthCheck, settings

# A busy machine is no defect of the code: no time limit on an example, none on drawing one.
settings.register_profile("trainmark", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmark")
