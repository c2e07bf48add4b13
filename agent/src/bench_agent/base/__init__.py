"""What every stage needs: the home folder, keys, errors, messages."""
