package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
)

func versionCommand(t *tool) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0); err != nil {
				return err
			}
			return t.printVersion()
		},
	}
}

func (t *tool) printVersion() error {
	if t.json {
		return json.NewEncoder(t.stdout).Encode(map[string]string{
			"version": mcompress.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	_, err := fmt.Fprintf(t.stdout, "mcompress %s (%s %s/%s)\n", mcompress.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
