// Package hostile makes content that a decoder must refuse or survive from content that it accepts: seeds of fuzz targets
// and the answers of servers that lie. What it makes depends on its arguments only, and is small.
package hostile
