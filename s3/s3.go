// Package s3 adds object storage to the library: where it is imported, s3://BUCKET/KEY is accepted as the path of a
// model, of data and of a result.
//
//	import _ "github.com/mcompress/mcompress/s3"
//
// Credentials, region and server are those of the environment, as AWS's tools read it. The program mcompress imports
// it; without it, a program links neither signatures nor the search for credentials.
package s3

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/mcompress/mcompress/internal/remote/signing"
)

func init() {
	signing.Register(func(t *http.Transport) signing.Signer { return chain{credentialsOf(t)} })
}

// A chain signs with the first credentials that are found.
type chain struct{ *credentials.Credentials }

// credentialsOf are the credentials as AWS's tools find them: in the environment, in the credentials file, by the role
// of a container, pod or machine.
func credentialsOf(t *http.Transport) *credentials.Credentials {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	role := cmp.Or(
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"),
	)
	// A container or pod with a role has it although the role of its machine is turned off.
	if role != "" || !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		providers = append(providers, &credentials.IAM{Client: metadataClient(t)})
	}
	return credentials.NewChainCredentials(providers)
}

// metadataClient requests the credentials of roles. Its dial is short, as the address of a machine's metadata does not
// exist elsewhere, where a run without credentials would wait for it.
func metadataClient(t *http.Transport) *http.Client {
	t = t.Clone()
	t.DialContext = (&net.Dialer{Timeout: time.Second}).DialContext
	return &http.Client{Transport: t, Timeout: 10 * time.Second}
}

// Check is an error if no credentials are found.
func (c chain) Check() error {
	_, err := c.value()
	return err
}

func (c chain) value() (credentials.Value, error) {
	v, err := c.GetWithContext(nil)
	if err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return v, errors.New(
			"no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE for a credentials file, or " +
				"run with a role; public objects are read by their https:// URL",
		)
	}
	return v, nil
}

// Sign signs a request (signature version 4).
func (c chain) Sign(r *http.Request, region string) (*http.Request, error) {
	v, err := c.value()
	if err != nil {
		return nil, err
	}
	return signer.SignV4(*r, v.AccessKeyID, v.SecretAccessKey, v.SessionToken, region), nil
}
