"""The four published systems as ready-made studies, with their pages; nothing else imports this room."""
