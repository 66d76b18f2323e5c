"""What a user sees of everything together: graphs that travel, and graphs on S3."""
