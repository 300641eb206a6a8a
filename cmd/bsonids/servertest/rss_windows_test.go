package servertest

import "os"

func maxRSS(*os.ProcessState) string { return "an unknown amount" }
