package openai

import (
	"regexp"
	"strings"

	"github.com/belay-run/belay/provider/internal/wire"
)

// What the service takes as the name of a tool, and as the id of a call: Chat is
// stricter about ids than Responses, so that its limit is kept by both.
var (
	fitName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	fitID   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	unfit   = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

	fitShortID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
)

const (
	mostName = 64
	hashed   = 8 // characters of a hash that tell names apart
)

// wireName returns the name of a tool as the service takes it. It depends on
// nothing but the name, so that calls of long ago are sent alike; a hash keeps
// apart what would become the same.
func wireName(name string) string {
	if fitName.MatchString(name) {
		return name
	}
	fit := unfit.ReplaceAllString(name, "_")
	fit = fit[:min(len(fit), mostName-hashed-1)]
	return strings.TrimRight(fit, "_") + "_" + wire.Hash(name)[:hashed]
}

// wireID returns the id of a call as the service takes it. Nobody reads it back:
// the service repeats no ids but its own.
func wireID(id string) string {
	if fitID.MatchString(id) {
		return id
	}
	return "call_" + wire.Hash(id)[:32]
}

// shortID returns the id of a call as Mistral takes it, which refuses every other.
func shortID(id string) string {
	if fitShortID.MatchString(id) {
		return id
	}
	return wire.Hash(id)[:9]
}

// wantsShortIDs reports whether a server takes no ids but short ones: Mistral, and others
// that serve its models, whose templates refuse them likewise. To all others one id is as
// good as another.
func wantsShortIDs(host, model string) bool {
	model = strings.ToLower(model)
	return strings.HasSuffix(host, "mistral.ai") || strings.Contains(model, "stral") || strings.Contains(model, "mixtral") || strings.Contains(model, "pixtral")
}
