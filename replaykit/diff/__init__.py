"""What differs between recorded episodes or replay reports. Imports no engine and starts none."""
