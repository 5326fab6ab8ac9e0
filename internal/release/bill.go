package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/belay-run/belay/internal/licenses"
)

// The bill of materials is a CycloneDX 1.6 document. These are its parts that are used here.
type (
	bill struct {
		Format      string      `json:"bomFormat"`   //nolint:tagliatelle // CycloneDX's name
		SpecVersion string      `json:"specVersion"` //nolint:tagliatelle // CycloneDX's name
		Version     int         `json:"version"`
		Metadata    billAbout   `json:"metadata"`
		Components  []component `json:"components"`
	}
	billAbout struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"` //nolint:tagliatelle // CycloneDX's name
		Name       string          `json:"name"`
		Version    string          `json:"version,omitempty"`
		PURL       string          `json:"purl,omitempty"`
		Hashes     []componentHash `json:"hashes,omitempty"`
		Licenses   []billLicense   `json:"licenses,omitempty"`
		Properties []property      `json:"properties,omitempty"`
	}
	componentHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	billLicense struct {
		Expression string `json:"expression"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

// billFile returns the name of a platform's bill of materials.
func (r *release) billFile(p platform) string { return r.archiveName(p) + ".cdx.json" }

// bill returns the bill of materials of a program. What is in it is read from the program itself, not from go.mod.
func (r *release) bill(p program, modules []licenses.Module) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(p.content))
	if err != nil {
		return nil, fmt.Errorf("what is in the program for %s: %w", p.platform, err)
	}
	known := map[string]licenses.Module{}
	for _, m := range modules {
		known[m.Path] = m
	}
	sum := sha256.Sum256(p.content)
	doc := bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: billAbout{Timestamp: r.time.Format(time.RFC3339), Component: component{
			Type: "application", Ref: "belay", Name: "belay", Version: r.version, PURL: purl(info.Main.Path, r.tag()),
			Hashes: []componentHash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: []billLicense{{"Apache-2.0"}},
			Properties: []property{{"belay:platform", p.String()}, {"belay:commit", r.commit}},
		}},
	}
	add := func(path, version, purl string) error {
		m, ok := known[path]
		if !ok {
			return fmt.Errorf("the program for %s contains %s, whose licence is not known: run make generate", p.platform, path)
		}
		doc.Components = append(doc.Components, component{Type: "library", Ref: path + "@" + version, Name: path, Version: version, PURL: purl, Licenses: []billLicense{{m.License}}})
		return nil
	}
	if err := add("Go standard library", info.GoVersion, purl("std", info.GoVersion)); err != nil {
		return nil, err
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("the program for %s contains a replaced %s: a release has none", p.platform, dep.Path)
		}
		if err := add(dep.Path, dep.Version, purl(dep.Path, dep.Version)); err != nil {
			return nil, err
		}
	}
	if err := add("htmx.org", known["htmx.org"].Version, "pkg:npm/htmx.org@"+known["htmx.org"].Version[1:]); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}

// purl returns the address of a Go module for tools that compare it with lists of vulnerabilities.
func purl(module, version string) string {
	return "pkg:golang/" + module + "@" + url.QueryEscape(version)
}
