package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

var (
	//go:embed templates/install.sh
	installTemplate string
	//go:embed templates/belay.rb
	formulaTemplate string
	//go:embed templates/Containerfile
	containerTemplate string
	//go:embed templates/readme.md
	readmeTemplate string
)

// value is a place in a template: @NAME@.
var value = lazyregexp.New(`@[A-Z0-9_]+@`)

// fill returns a template with the release's values. The sums are the checksums of the archives, by platform.
func (r *release) fill(name, text string, sums map[string]string) ([]byte, error) {
	values := []string{"@VERSION@", r.version, "@COMMIT@", r.commit, "@FROM@", r.base + "/" + r.tag()}
	for p, sum := range sums {
		values = append(values, "@SHA256_"+strings.ToUpper(strings.ReplaceAll(p, "/", "_"))+"@", sum)
	}
	filled := strings.NewReplacer(values...).Replace(text)
	if left := value.FindString(filled); left != "" {
		return nil, fmt.Errorf("%s: nothing is known for %s", name, left)
	}
	return []byte(filled), nil
}

// sum returns the SHA-256 of a file in hexadecimal.
func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}
