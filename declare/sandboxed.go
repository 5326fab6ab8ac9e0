package declare

import (
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// deniedWords matches what programs print if the system denies them a file or the network.
var deniedWords = lazyregexp.New(`(?i)permission denied|operation not permitted|read-only file system|network is unreachable|could not resolve host|name resolution|name or service not known|getaddrinfo|\b(?:EACCES|EPERM|EROFS|ENETUNREACH|EAI_AGAIN)\b`)

// sandboxed returns the error of a program. If the program ran in a sandbox, and what it printed
// looks as if the sandbox was the cause, the error says so.
func sandboxed(err error, run *Execution, printed string) error {
	if err == nil || run.Note == "" || !deniedWords.MatchString(printed) {
		return err
	}
	safe, ok := err.(*hook.SafeError) //nolint:errorlint // another error has no message that is shown
	if !ok {
		return err
	}
	own := *safe
	own.Message += ", probably because " + run.Note
	return &own
}
