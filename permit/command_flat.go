package permit

import (
	_ "embed" // commands.txt
	"errors"
	"fmt"
	"strconv"
	"strings"
)

//go:embed commands.txt
var flatText string

// flatJudge makes a judge from a line of commands.txt. fields is the number of fields
// after the names.
type flatJudge struct {
	fields int
	make   func(fields []string) (judge, error)
}

// flatJudges are the sections of commands.txt.
var flatJudges = map[string]flatJudge{
	"harmless":        {0, func([]string) (judge, error) { return harmless, nil }},
	"reader":          withOptions(reader),
	"lister":          {2, func(f []string) (judge, error) { return dirReader(f[0], f[1]), nil }},
	"differ":          withOptions(differ),
	"object-reader":   withOptions(objectReader),
	"in-out":          withOptions(inOutCommand),
	"writer":          withOptions(writer),
	"builder":         {2, func(f []string) (judge, error) { return builder(f[1], f[0]), nil }},
	"recipes":         withOptions(recipes),
	"script":          withOptions(scriptRunner),
	"wrapper":         withNumber(wrapper),
	"machine-wrapper": withNumber(machineWrapper),
	"build":           inZone(ZoneBuild),
	"network":         inZone(ZoneNetwork),
	"external":        inZone(ZoneExternal),
	"machine":         inZone(ZoneMachine),
	"unknown":         withOptions(opaque),
}

func withOptions(of func(list string) judge) flatJudge {
	return flatJudge{1, func(f []string) (judge, error) { return of(f[0]), nil }}
}

func withNumber(of func(list string, n int) judge) flatJudge {
	return flatJudge{2, func(f []string) (judge, error) {
		n, err := strconv.Atoi(f[1])
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", f[1])
		}
		return of(f[0], n), nil
	}}
}

func inZone(z Zone) flatJudge {
	return flatJudge{1, func(f []string) (judge, error) { return at(z, f[0]), nil }}
}

// parseFlat parses the text of commands.txt, which explains its own format. The error
// names every line with a mistake. The result lacks the commands of these lines.
func parseFlat(text string) (*commands, error) {
	all := &commands{judges: table{}, answersAlone: map[string]bool{}}
	var problems []error
	var section string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\n    ", " "), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case section == "answers-alone":
			for name := range strings.FieldsSeq(line) {
				all.answersAlone[name] = true
			}
		default:
			if err := all.judges.addLine(section, line); err != nil {
				problems = append(problems, fmt.Errorf("permit: commands.txt: section %q: %q: %w", section, line, err))
			}
		}
	}
	return all, errors.Join(problems...)
}

func (t table) addLine(section, line string) error {
	kind, ok := flatJudges[section]
	if !ok {
		return errors.New("this section does not exist")
	}
	fields := strings.Split(line, " | ")
	if len(fields) != 1+kind.fields {
		return fmt.Errorf("it has %d fields after the names, want %d", len(fields)-1, kind.fields)
	}
	j, err := kind.make(fields[1:])
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(fields[0]) {
		if t[name] != nil {
			return fmt.Errorf("%s is there twice", name)
		}
		t[name] = j
	}
	return nil
}
