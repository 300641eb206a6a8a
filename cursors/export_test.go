package cursors

var (
	ErrNilCursor = errNilCursor
	ErrEnded     = errEnded
)
