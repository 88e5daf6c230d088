-- Every table the first release needs. Times are microseconds since 1970 in UTC, so that they sort and compare as numbers.

CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    key TEXT NOT NULL,
    channel TEXT NOT NULL,
    workspace TEXT NOT NULL DEFAULT '',
    agent TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    title_source INTEGER NOT NULL DEFAULT 0,
    title_attempts INTEGER NOT NULL DEFAULT 0,
    preview TEXT NOT NULL DEFAULT '',
    preview_role TEXT NOT NULL DEFAULT '',
    message_count INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    closed_at INTEGER,
    deleted_at INTEGER,
    extra_roots TEXT NOT NULL DEFAULT '[]',
    grants TEXT NOT NULL DEFAULT '{}',
    pinned INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    origin TEXT,
    origin_kind TEXT,
    parent_id TEXT,
    consolidated_through INTEGER NOT NULL DEFAULT 0,
    replay_from INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    compaction TEXT NOT NULL DEFAULT '{}',
    metadata TEXT NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX sessions_open ON sessions (key) WHERE closed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX sessions_listed ON sessions (pinned DESC, updated_at DESC, id) WHERE deleted_at IS NULL;

-- What was found damaged is read as empty. Before something new takes its place, it is kept here as it was.
CREATE TABLE set_aside (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    field TEXT NOT NULL,
    value
);
CREATE TRIGGER set_aside_extra_roots BEFORE UPDATE OF extra_roots ON sessions
WHEN old.deleted_at IS NULL
    AND CASE WHEN json_valid(old.extra_roots) THEN json_type(old.extra_roots) <> 'array' ELSE 1 END BEGIN
    INSERT INTO set_aside (session_id, field, value) VALUES (old.id, 'extra_roots', old.extra_roots);
END;
CREATE TRIGGER set_aside_grants BEFORE UPDATE OF grants ON sessions
WHEN old.deleted_at IS NULL
    AND CASE WHEN json_valid(old.grants) THEN json_type(old.grants) <> 'object' ELSE 1 END BEGIN
    INSERT INTO set_aside (session_id, field, value) VALUES (old.id, 'grants', old.grants);
END;
CREATE TRIGGER set_aside_compaction BEFORE UPDATE OF compaction ON sessions
WHEN old.deleted_at IS NULL
    AND CASE WHEN json_valid(old.compaction) THEN json_type(old.compaction) <> 'object' ELSE 1 END BEGIN
    INSERT INTO set_aside (session_id, field, value) VALUES (old.id, 'compaction', old.compaction);
END;
CREATE TRIGGER set_aside_metadata BEFORE UPDATE OF metadata ON sessions
WHEN old.deleted_at IS NULL
    AND CASE WHEN json_valid(old.metadata) THEN json_type(old.metadata) <> 'object' ELSE 1 END BEGIN
    INSERT INTO set_aside (session_id, field, value) VALUES (old.id, 'metadata', old.metadata);
END;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    v INTEGER NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT,
    body TEXT,
    turn_id TEXT,
    event_id TEXT,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (session_id, seq)
);
-- An event becomes a row once, whatever happens to the process that stores it.
CREATE UNIQUE INDEX messages_event ON messages (session_id, event_id) WHERE event_id IS NOT NULL;

-- Rows that retention moved out of the live ones, whole; nothing here is replayed.
CREATE TABLE attic (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    v INTEGER NOT NULL,
    role TEXT NOT NULL,
    kind TEXT NOT NULL,
    content TEXT,
    body TEXT,
    turn_id TEXT,
    event_id TEXT,
    tokens INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    moved_at INTEGER NOT NULL
);
CREATE INDEX attic_of ON attic (session_id, seq);
CREATE INDEX attic_event ON attic (session_id, event_id) WHERE event_id IS NOT NULL;

-- Full text over rows and titles. The words stay in their own tables; these hold the index only. The views say what is
-- indexed: searchable() parts characters of scripts without spaces (domain/searching.py), and is spared plain ASCII. What
-- an index holds is taken out by the same text that was put in, so always by these views. Marks are parts of words, since
-- vowels of many scripts are marks.
CREATE VIEW searchable_messages (id, content) AS
SELECT id, CASE WHEN content IS NULL THEN '' WHEN length(content) = length(CAST(content AS BLOB)) THEN content
                ELSE searchable(CAST(content AS BLOB)) END
FROM messages;
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = 'searchable_messages', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
-- New rows are indexed once a commit (store/sqlite/indexing.py), so a row that goes may not be in the index yet.
CREATE TRIGGER messages_fts_delete BEFORE DELETE ON messages
WHEN EXISTS (SELECT 1 FROM messages_fts_docsize WHERE id = old.id) BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content)
    SELECT 'delete', id, content FROM searchable_messages WHERE id = old.id;
END;

-- A title that is only a first line is found as that line.
CREATE VIEW searchable_titles (number, title) AS
SELECT number, CASE WHEN length(title) = length(CAST(title AS BLOB)) THEN title
                    ELSE searchable(CAST(title AS BLOB)) END
FROM sessions WHERE title_source > 1 AND title <> '';
CREATE VIRTUAL TABLE titles_fts USING fts5 (
    title, content = 'searchable_titles', content_rowid = 'number',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'");
CREATE TRIGGER titles_fts_insert AFTER INSERT ON sessions WHEN new.title_source > 1 BEGIN
    INSERT INTO titles_fts (rowid, title) SELECT number, title FROM searchable_titles WHERE number = new.number;
END;
CREATE TRIGGER titles_fts_before_update BEFORE UPDATE OF title ON sessions WHEN old.title_source > 1 BEGIN
    INSERT INTO titles_fts (titles_fts, rowid, title)
    SELECT 'delete', number, title FROM searchable_titles WHERE number = old.number;
END;
CREATE TRIGGER titles_fts_after_update AFTER UPDATE OF title ON sessions WHEN new.title_source > 1 BEGIN
    INSERT INTO titles_fts (rowid, title) SELECT number, title FROM searchable_titles WHERE number = new.number;
END;

CREATE TABLE message_marks (
    session_id TEXT NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    mark TEXT NOT NULL,
    marked_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, seq, mark)
);

CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    channel TEXT NOT NULL,
    route TEXT NOT NULL,
    message_id TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    waiting_for TEXT,
    waiting_details TEXT,
    waiting_until INTEGER,
    waiting_after INTEGER,
    stop_requested_by TEXT,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX turns_unfinished ON turns (session_id) WHERE state IN ('running', 'waiting');
CREATE INDEX turns_set_aside ON turns (started_at) WHERE state = 'set aside';

CREATE TABLE inbox (
    arrival INTEGER PRIMARY KEY AUTOINCREMENT,
    channel TEXT NOT NULL,
    dedupe_key TEXT NOT NULL,
    session_id TEXT REFERENCES sessions (id),
    turn_id TEXT,
    state TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    stopped_by TEXT,
    tokens INTEGER NOT NULL,
    body TEXT,
    UNIQUE (channel, dedupe_key)
);
CREATE INDEX inbox_pending ON inbox (session_id, sent_at, arrival) WHERE state = 'pending';
CREATE INDEX inbox_due ON inbox (channel) WHERE state = 'pending';
CREATE INDEX inbox_done ON inbox (accepted_at) WHERE state = 'done';

CREATE TABLE outbox (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    dedupe_key TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    channel TEXT NOT NULL,
    route TEXT NOT NULL,
    session_id TEXT,
    turn_id TEXT,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER,
    error TEXT,
    created_at INTEGER NOT NULL,
    done_at INTEGER,
    body TEXT
);
CREATE INDEX outbox_pending ON outbox (lane, position) WHERE state = 'pending';
CREATE INDEX outbox_due ON outbox (channel, position) WHERE state = 'pending';
CREATE INDEX outbox_done ON outbox (done_at) WHERE state = 'done';

CREATE TABLE outbox_parts (
    delivery_id TEXT NOT NULL REFERENCES outbox (id),
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    body TEXT,
    ref TEXT,
    hash TEXT,
    opening_since INTEGER,
    resent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (delivery_id, number)
);
CREATE INDEX outbox_parts_resent ON outbox_parts (resent) WHERE resent > 0;

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    token INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);

-- What is known of kept files. An import keeps a session's files before the session itself, and may be killed between
-- the two and run again; so a row here does not need its session to be there.
CREATE TABLE media (
    ref TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL DEFAULT '',
    mime TEXT NOT NULL DEFAULT '',
    size_bytes INTEGER NOT NULL,
    width INTEGER,
    height INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (session_id, sha256)
);
CREATE INDEX media_bytes ON media (sha256);

CREATE TABLE usage (
    turn_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    written_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    counted_tokens INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (turn_id, number)
);
CREATE INDEX usage_by_model ON usage (provider, model, created_at);
CREATE INDEX usage_by_session ON usage (session_id, created_at);
