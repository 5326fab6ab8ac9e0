package belay

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/belay-run/belay/hook"
)

type labels[In any] = map[string]func(In) string

// inputOf is a phase input whose fields are F.
type inputOf[F any] interface {
	~struct{ input[F] }
	scope() *hook.Scope
	Agent() string
}

// define fills in what every phase of an agent has in common: where an input
// belongs, the label agent, how it is decoded and how it is found again.
func define[F any, In inputOf[F], Out hook.Output](d hook.Definition[In, Out]) hook.Phase[In, Out] {
	all := labels[In]{"agent": In.Agent}
	maps.Copy(all, d.Labels)
	d.Labels = all
	d.Scope = In.scope
	d.Decode = func(scope hook.Scope, data []byte) (In, error) {
		decoded, err := decodeInput[F](scope, data)
		return In(struct{ input[F] }{decoded}), err
	}
	name := d.Name
	d.Reference = func(in In) string {
		scope := in.scope()
		return reference(scope.Session, scope.Turn, strconv.Itoa(scope.Step), name, partOf(struct{ input[F] }(in).data()))
	}
	return hook.Define(d)
}

// parter is implemented by fields of which one step has several.
type parter interface{ part() string }

func partOf(fields any) string {
	if p, ok := fields.(parter); ok {
		return p.part()
	}
	return ""
}

// reference joins the parts of a transcript reference. A part that is not of
// plain characters, or looks like a hash, is given by its hash, so that other
// parts never make the same reference.
func reference(parts ...string) string {
	var kept []string
	for _, part := range parts {
		plain := !strings.ContainsFunc(part, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r))
		})
		if !plain || len(part) > 64 || strings.HasPrefix(part, "h:") {
			sum := sha256.Sum256([]byte(part))
			part = "h:" + hex.EncodeToString(sum[:16])
		}
		kept = append(kept, part)
	}
	return strings.TrimRight(strings.Join(kept, "/"), "/")
}
