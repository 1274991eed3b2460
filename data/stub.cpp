// Placeholder so that the library has a source until its first file lands.
