package uuidgen

const RaceEnabled = raceEnabled
