module github.com/mcompress/mcompress

go 1.26

require (
	github.com/bmatcuk/doublestar/v4 v4.9.1 // indirect
	github.com/goccy/go-yaml v1.19.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sync v0.18.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
