module github.com/mcompress/mcompress

go 1.26
