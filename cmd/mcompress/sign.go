package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/sign"
)

// passphraseVariable is the environment variable that decrypts keys.
const passphraseVariable = "MCOMPRESS_KEY_PASSPHRASE"

// signFlags are the flags of sign.
type signFlags struct {
	key      string
	output   string
	symlinks bool
}

func signCommand(t *tool) *cli.Command {
	s := &signFlags{}
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign a model with its reports, or a folder, with a key (OpenSSF Model Signing)",
		ArgsUsage: "MODEL|DIR",
		Description: `Writes the signature of a model with its external data and its reports to NAME.sig, or that of all
files of a folder to model.sig in it. verify-report and model-signing verify it. An encrypted key
is decrypted with $` + passphraseVariable + `, or with a passphrase that is read from the terminal.`,
		Flags: group("flags", s.flags),
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1)
			if err != nil {
				return err
			}
			return s.sign(c.Context, t, args[0])
		},
	}
}

func (s *signFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&s.key, "key", "", "private `key`, a file or env:NAME: elliptic curve P-256, P-384 or P-521 as PEM")
	outPathVar(fs, &s.output, "output", "`path` of the signature (default: NAME.sig, or model.sig in the folder)")
	fs.BoolVar(&s.symlinks, "allow-symlinks", false, "sign the files that symbolic links name")
}

// A signed is a signature as JSON.
type signed struct {
	Signature string      `json:"signature"`
	Key       string      `json:"key_sha256"` // of the public key as PEM
	Files     []sign.File `json:"files"`
}

func (s *signFlags) sign(ctx context.Context, t *tool, path string) error {
	if s.key == "" {
		return usagef("--key is required")
	}
	if s.output == "" {
		s.output = sign.DefaultPath(path)
	}
	key, err := sign.PrivateKey(s.key, func() ([]byte, error) { return passphrase(ctx) })
	if err != nil {
		return keyError(err)
	}
	files, err := sign.FilesOf(ctx, path)
	if err != nil {
		return err
	}
	o := sign.Options{Symlinks: s.symlinks}
	if p := t.newProgress(path); p != nil {
		o.Progress = p.show
		defer p.stop()
	}
	bundle, list, err := sign.Sign(ctx, key, files, s.output, o)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range list {
		paths = append(paths, filepath.Join(files.Root, filepath.FromSlash(f.Name)))
	}
	access, err := atomicfile.Like(paths...)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.output, access, func(w io.Writer) error {
		_, err := w.Write(bundle)
		return err
	}); err != nil {
		return err
	}
	if t.json {
		fingerprint, err := sign.Fingerprint(&key.PublicKey)
		if err != nil {
			return err
		}
		return t.encode(signed{s.output, fingerprint, list})
	}
	_, err = fmt.Fprintf(t.stdout, "%s: signature of %d files\n", s.output, len(list))
	return err
}

// keyError is an error of --key: one of the command line unless a file could not be read.
func keyError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return &usageError{fmt.Errorf("--key: %w", err)}
}

// passphrase is that of an encrypted key.
func passphrase(ctx context.Context) ([]byte, error) {
	if word, ok := os.LookupEnv(passphraseVariable); ok {
		return []byte(word), nil
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return nil, fmt.Errorf("the key is encrypted: set %s to its passphrase", passphraseVariable)
	}
	state, err := term.GetState(in)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { // an interruption does not end reading
		term.Restore(in, state)
		fmt.Fprintln(os.Stderr)
		os.Exit(exitIO)
	})()
	fmt.Fprint(os.Stderr, "passphrase of the key: ")
	word, err := term.ReadPassword(in)
	fmt.Fprintln(os.Stderr)
	return word, err
}
