package permit

import "strings"

// A line may set variables in many ways: by an assignment, a declaration, a loop, a
// redirection, an expression, an expansion, and by builtins such as read and printf. In
// all these cases, the analysis calls functions of this file, because some variables
// change what the shell runs.

// The shell's own variables, which bash sets or reads.
const (
	// ownVariables may lose the values that the line gives them.
	ownVariables = "_ BASH* COLUMNS COMP_* COMPREPLY COPROC* DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME FUNCNEST GROUPS HISTCMD LINENO LINES MAPFILE " +
		"OLDPWD OPTARG OPTIND PIPESTATUS PPID PWD RANDOM READLINE_* REPLY SECONDS SHELLOPTS SRANDOM TEXTDOMAIN* TIMEFORMAT UID auto_resume histchars"
	// countingVariables are the shell's own variables that always hold numbers. Bash
	// evaluates some of the assigned values as arithmetic, which may run commands.
	countingVariables = "BASHPID COLUMNS EPOCHSECONDS EUID FUNCNEST HISTCMD LINENO LINES OPTIND PPID RANDOM SECONDS SRANDOM UID BASH_SUBSHELL PIPESTATUS"
	// idleVariables are the shell's own variables that may have any value, because only
	// the line itself reads them.
	idleVariables = "_ COLUMNS COMPREPLY COPROC* FUNCNAME LINES MAPFILE OPTARG PIPESTATUS REPLY TIMEFORMAT"
)

var (
	ownNames      = newNameList(ownVariables)
	countingNames = newNameList(countingVariables)
	idleNames     = newNameList(idleVariables)
)

// nameList is a list of names. A * in a name matches any text.
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

// isOwn reports whether a variable is one of the shell's own variables.
func isOwn(name string) bool { return ownNames.has(name) }

// hazard records a finding if the line sets a variable that can change which programs
// run.
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
		a.lost = "an earlier command changed " + name
	}
}

// vanishes records that a variable no longer has a value. This may matter: without PATH,
// for example, bash runs programs from the current directory.
func (a *analysis) vanishes(name string) {
	if essentialNames.has(name) || isOwn(name) && !idleNames.has(name) {
		a.hazard(name, arg{text: "(nothing)"})
		a.markDirty(name)
	}
}

// essentialNames are variables that change which programs run if they are empty.
var essentialNames = newNameList("PATH HOME TMPDIR PWD OLDPWD")

// hazard describes the danger of setting a variable.
type hazard struct {
	zone Zone // ZoneSafe if there is no danger
	why  string
	// rewords is set if the shell may read later words of the line differently.
	rewords bool
}
