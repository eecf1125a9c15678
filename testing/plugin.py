"""The pytest plugin that installing Logboat registers."""
