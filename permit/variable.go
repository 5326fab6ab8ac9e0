package permit

import "strings"

// A text may set variables in many ways: by an assignment, a declaration, a loop, a
// redirection, an expression, an expansion, and by builtins such as read and printf.
// All of them come here, because some variables change what the shell runs.

// The shell's own variables: bash sets them, or reads them to find out what to do.
const (
	// ownVariables cannot be relied on to hold what a text has put into them.
	ownVariables = "_ BASH* COLUMNS COMP_* COMPREPLY COPROC* DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME FUNCNEST GROUPS HISTCMD LINENO LINES MAPFILE " +
		"OLDPWD OPTARG OPTIND PIPESTATUS PPID PWD RANDOM READLINE_* REPLY SECONDS SHELLOPTS SRANDOM TEXTDOMAIN* TIMEFORMAT UID auto_resume histchars"
	// countingVariables are those among them that hold numbers, whatever they are set
	// to. Bash computes what some of them are given, and so may run commands.
	countingVariables = "BASHPID COLUMNS EPOCHSECONDS EUID FUNCNEST HISTCMD LINENO LINES OPTIND PPID RANDOM SECONDS SRANDOM UID BASH_SUBSHELL PIPESTATUS"
	// idleVariables are those among them that may be set to anything: nothing reads them
	// but the text itself.
	idleVariables = "_ COLUMNS COMPREPLY COPROC* FUNCNAME LINES MAPFILE OPTARG PIPESTATUS REPLY TIMEFORMAT"
)

var (
	ownNames      = newNameList(ownVariables)
	countingNames = newNameList(countingVariables)
	idleNames     = newNameList(idleVariables)
)

// nameList is a list of names. Those that end in * stand for all that begin so, and one
// with a * inside for all that begin and end so.
type nameList struct {
	exact map[string]bool
	wild  [][2]string
}

func newNameList(list string) *nameList {
	l := &nameList{exact: map[string]bool{}}
	for entry := range strings.FieldsSeq(list) {
		if before, after, many := strings.Cut(entry, "*"); many {
			l.wild = append(l.wild, [2]string{before, after})
		} else {
			l.exact[entry] = true
		}
	}
	return l
}

func (l *nameList) has(name string) bool {
	if l.exact[name] {
		return true
	}
	for i := range l.wild {
		if w := &l.wild[i]; strings.HasPrefix(name, w[0]) && strings.HasSuffix(name[len(w[0]):], w[1]) {
			return true
		}
	}
	return false
}

// isOwn reports whether a variable is one of the shell's own.
func isOwn(name string) bool { return ownNames.has(name) }

// hazard notes that a variable is set which changes what runs.
func (a *analysis) hazard(name string, value arg) {
	a.steered(name, value)
	h := hazardOf(name, value)
	if h.zone == ZoneSafe {
		return
	}
	if h.zone == ZoneMachine && a.loadsOwn(name, value) {
		h.zone, h.why = ZoneBuild, "programs load code of the project"
	}
	f := Finding{Kind: KindCommand, Subject: name + "=" + value.text, Zone: h.zone, Why: h.why, code: h.zone == ZoneBuild}
	if strings.HasPrefix(name, "BELAY_") {
		f.Protection = selfCommand
	}
	a.add(f)
	if h.rewords {
		a.lost = "what " + name + " says was changed"
	}
}

// vanishes notes that a variable has no value any more, or a new one of its own that has
// none. Without PATH, for one, bash takes programs from the directory that it is in.
func (a *analysis) vanishes(name string) {
	if essentialNames.has(name) || isOwn(name) && !idleNames.has(name) {
		a.hazard(name, arg{text: "(nothing)"})
		a.soil(name)
	}
}

// essentialNames are variables that mean something else if they have no value.
var essentialNames = newNameList("PATH HOME TMPDIR PWD OLDPWD")

// hazard is what setting a variable can do.
type hazard struct {
	zone Zone // ZoneSafe if it can do nothing
	why  string
	// rewords says that later words of the line may mean something else.
	rewords bool
}
