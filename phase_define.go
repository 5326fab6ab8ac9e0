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

// inputOf is the constraint for the input types of phases. F is the type of their fields.
type inputOf[F any] interface {
	~struct{ input[F] }
	scope() *hook.Scope
	Agent() string
}

// define adds to a definition everything that the phases of an agent have in common: the
// scope, the label agent, the decoder of the input, and the transcript reference.
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

// parter is implemented by the input fields of phases that can fire several times in a
// step. part returns a text that is different each time.
type parter interface{ part() string }

func partOf(fields any) string {
	if p, ok := fields.(parter); ok {
		return p.part()
	}
	return ""
}

// reference joins the parts of a transcript reference. It replaces a part by its hash if
// the part is long, has unusual characters or looks like a hash. So different parts never
// give the same reference.
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
