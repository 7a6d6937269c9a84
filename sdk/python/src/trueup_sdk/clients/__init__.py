"""Adapters of the providers' official clients."""
