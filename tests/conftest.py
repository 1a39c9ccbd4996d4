"""Its place puts this folder on the path: tests of engine and search share `parity.problems`."""
