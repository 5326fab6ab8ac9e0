package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The statement says how the files were made: an in-toto statement with the predicate of SLSA. These are its parts that are used.
type (
	statement struct {
		Type          string     `json:"_type"` //nolint:tagliatelle // in-toto's name
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"` //nolint:tagliatelle // in-toto's name
		Predicate     predicate  `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	predicate struct {
		Definition definition `json:"buildDefinition"` //nolint:tagliatelle // SLSA's name
		Run        runDetails `json:"runDetails"`      //nolint:tagliatelle // SLSA's name
	}
	definition struct {
		Type         string            `json:"buildType"`            //nolint:tagliatelle // SLSA's name
		External     map[string]string `json:"externalParameters"`   //nolint:tagliatelle // SLSA's name
		Internal     map[string]string `json:"internalParameters"`   //nolint:tagliatelle // SLSA's name
		Dependencies []resource        `json:"resolvedDependencies"` //nolint:tagliatelle // SLSA's name
	}
	runDetails struct {
		Builder  map[string]string `json:"builder"`
		Metadata map[string]string `json:"metadata"`
	}
	// envelope is a signed text, in the format of DSSE.
	envelope struct {
		PayloadType string      `json:"payloadType"` //nolint:tagliatelle // DSSE's name
		Payload     string      `json:"payload"`
		Signatures  []signature `json:"signatures"`
	}
	signature struct {
		KeyID string `json:"keyid"`
		Sig   string `json:"sig"`
	}
)

const (
	repository  = "git+https://github.com/belay-run/belay"
	buildType   = "https://github.com/belay-run/belay/blob/main/docs/releasing.md"
	payloadType = "application/vnd.in-toto+json"
)

// provenance returns the statement about files, whose checksums are given by name.
func (r *release) provenance(ctx context.Context, sums map[string]string) ([]byte, error) {
	goVersion, err := r.command(ctx, r.root, nil, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	goSum, err := os.ReadFile(r.root + "/go.sum")
	if err != nil {
		return nil, err
	}
	doc := statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: predicate{
			Definition: definition{
				Type:     buildType,
				External: map[string]string{"version": r.tag(), "repository": repository, "command": "make release VERSION=" + r.tag()},
				Internal: map[string]string{"go": strings.TrimSpace(string(goVersion)), "flags": strings.Join(r.flags(), " ")},
				Dependencies: []resource{
					{URI: repository + "@" + r.tag(), Digest: map[string]string{"gitCommit": r.commit}},
					{Name: "go.sum", Digest: map[string]string{"sha256": sum(goSum)}},
				},
			},
			Run: runDetails{
				Builder:  map[string]string{"id": "https://github.com/belay-run/belay/blob/main/Makefile"},
				Metadata: map[string]string{"invocationId": r.commit},
			},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		doc.Subject = append(doc.Subject, resource{Name: name, Digest: map[string]string{"sha256": sums[name]}})
	}
	text, err := json.Marshal(doc)
	return append(text, '\n'), err
}

// sealed returns the statement with a signature of it.
func (r *release) sealed(text []byte) ([]byte, error) {
	signed, err := json.Marshal(envelope{
		PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(text),
		Signatures: []signature{{r.keyID(), base64.StdEncoding.EncodeToString(ed25519.Sign(r.key, preAuth(payloadType, text)))}},
	})
	return append(signed, '\n'), err
}

// preAuth returns what a DSSE signature signs: the type and the text, each with its length.
func preAuth(kind string, text []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(text), text)
}

// keyID returns the SHA-256 of the public key.
func (r *release) keyID() string {
	public := sha256.Sum256(r.key.Public().(ed25519.PublicKey))
	return hex.EncodeToString(public[:])
}

// readKey reads a private Ed25519 key, as openssl genpkey writes it.
func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s is no private key in PEM form: make one with openssl genpkey -algorithm ed25519", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New(file + " is no Ed25519 key")
	}
	return private, nil
}

// fingerprint returns the SHA-256 of the public key, as openssl writes the key in DER form.
func (r *release) fingerprint() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(r.key.Public())
	return sum(der), err
}

// publicKey returns the public key in PEM form, as openssl reads it.
func (r *release) publicKey() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(r.key.Public())
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
