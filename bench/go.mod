module github.com/bsonids/bsonids/bench

go 1.25.0

replace github.com/bsonids/bsonids => ../

replace github.com/bsonids/bsonids/integration => ../integration
