"""Published studies, imported and compared with what they print: `scalesweep gallery`."""
