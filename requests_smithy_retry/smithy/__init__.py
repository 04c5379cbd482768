"""What only the Smithy papers and the AWS SDKs ask for: buckets, adaptive mode, models, AWS codes and settings."""
