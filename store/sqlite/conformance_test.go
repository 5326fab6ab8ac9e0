package sqlite_test

import "testing"

// SPEC L-01, L-02, J-03, L-13
func TestStore(t *testing.T) {
	t.Parallel()
	backend.Sessions(t)
}

// SPEC L-02
func TestTurns(t *testing.T) {
	t.Parallel()
	backend.Turns(t)
}

// SPEC J-01
func TestJournal(t *testing.T) {
	t.Parallel()
	backend.Journal(t)
}

// SPEC J-07
func TestQueue(t *testing.T) {
	t.Parallel()
	backend.Queue(t)
}

// SPEC J-04, J-05
func TestWorkQueue(t *testing.T) {
	t.Parallel()
	backend.WorkQueue(t)
}

// SPEC J-04
func TestInputs(t *testing.T) {
	t.Parallel()
	backend.Inputs(t)
}

// SPEC J-02, P-18
func TestSecretsOfATurn(t *testing.T) { //nolint:paralleltest // it sets a variable
	backend.SecretsOfATurn(t)
}

// SPEC J-02, P-18
func TestSecretsOfApprovals(t *testing.T) {
	t.Parallel()
	backend.SecretsOfApprovals(t)
}

// SPEC P-18
func TestApprovalOfARuleWithASecret(t *testing.T) {
	t.Parallel()
	backend.RuleWithASecret(t)
}

// SPEC J-01
func TestManyRuns(t *testing.T) {
	t.Parallel()
	backend.ManyRuns(t)
}

// SPEC J-08
func TestRunsOfSubscription(t *testing.T) {
	t.Parallel()
	backend.RunsOfSubscription(t)
}

// SPEC J-01, J-08
func TestFoldedRuns(t *testing.T) {
	t.Parallel()
	backend.FoldedRuns(t)
}

// SPEC J-08
func TestFoldedRunsNearBounds(t *testing.T) {
	t.Parallel()
	backend.FoldedRunsNearBounds(t)
}

// SPEC J-08
func TestFollowFolded(t *testing.T) {
	t.Parallel()
	backend.FollowFolded(t)
}

// SPEC V-02
func TestUsage(t *testing.T) {
	t.Parallel()
	backend.Usage(t)
}

// A refused decision is refused in the words of Belay, whatever text it quotes.
func TestRefusalThatQuotes(t *testing.T) {
	t.Parallel()
	backend.RefusalThatQuotes(t)
}
