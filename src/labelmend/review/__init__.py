"""The local review server: a person looks at suspects in a browser and decides, one key an answer."""
