"""What a result says: its fields, and what follows from them alone."""
