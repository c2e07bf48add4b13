"""Published figures: copied from elsewhere, unsigned, trust level 0."""

# The i7-8700 that its source trained on (863 s per VGG16 epoch), until this project has a frozen
# baseline of its own.
DEFAULT_BASELINE = "published-intel-core-i7-8700"
