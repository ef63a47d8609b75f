"""Reading and validating what people write: master configs, runners, settings."""
