module github.com/mcompress/mcompress/internal/dev/bench

go 1.26.0

require (
	github.com/dustin/go-humanize v1.0.1
	github.com/mcompress/mcompress v0.0.0
	golang.org/x/sys v0.44.0
)

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0 // indirect
	github.com/bmatcuk/doublestar/v4 v4.9.1 // indirect
	github.com/ebitengine/purego v0.11.3 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/goccy/go-yaml v1.19.0 // indirect
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/mcompress/mcompress => ../../..
