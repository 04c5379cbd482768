"""Classification: verdicts, their fold, the default classifiers and the resend rule."""
