// Command s3server is the S3 server of the tests: VersityGW, with folders as buckets and no other backend. Its own
// command compiles the SDKs of Azure, of AWS's IAM and of its tests, too, which takes as long as all the rest. It is a
// module of its own, so that mcompress does not depend on it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	c := embedgw.Config{Quiet: true}
	flag.StringVar(&c.RootUserAccess, "access", "", "access key")
	flag.StringVar(&c.RootUserSecret, "secret", "", "secret key")
	flag.StringVar(&c.AccessLog, "access-log", "", "file that requests are appended to")
	address := flag.String("address", "", "host and port")
	metadata := flag.String("metadata", "", "folder for what the server keeps besides objects")
	flag.Parse()
	c.Ports = []string{*address}
	if err := serve(flag.Arg(0), *metadata, &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs the server on the buckets in a folder. Limits are the defaults of VersityGW's command.
func serve(buckets, metadata string, c *embedgw.Config) error {
	c.MaxConnections, c.MaxRequests, c.MultipartMaxParts = 250000, 100000, 10000
	store, err := meta.NewSideCar(metadata)
	if err != nil {
		return err
	}
	options := posix.PosixOpts{SideCarDir: metadata, Concurrency: 5000, IOBufferSize: 1 << 20, CopyObjectThreshold: 5 << 30}
	options.SetNewDirPerm(0o755)
	options.SetNewFilePerm(0o644)
	backend, err := posix.New(buckets, store, options)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), backend, c)
}
