//! Turns a stored run into HTML, Markdown, CSV, JSON, SVG and a COSBench archive.
