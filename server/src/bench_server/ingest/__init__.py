"""What is received: verify, check, decide, save; keys, challenges and moderation."""
