"""Trust: owners, invites, challenges, the log, and what the operator or an owner said.

What was kept before the log existed becomes its first entries, keys before results; the server
signs the checkpoint over them when it next starts.

Revision: 0003
"""

import base64
import hashlib
import json
import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY_EVENT = "application/vnd.trainmark.key-event.v1+json"


def upgrade() -> None:
    op.create_table(
        "owner",
        sa.Column("label", sa.String(80), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("label", name="pk_owner"),
    )
    op.create_table(
        "invite",
        sa.Column("code_sha256", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(80), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_by", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("code_sha256", name="pk_invite"),
    )
    op.create_table(
        "log_entry",
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("commitment", sa.LargeBinary(), nullable=False),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("payload_sha256", sa.String(64), nullable=True),
        sa.Column("envelope", sa.LargeBinary(), nullable=True),
        sa.Column("submission_id", sa.String(16), nullable=True),
        sa.Column("key_chain", sa.String(64), nullable=True),
        sa.Column("logged_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("log_index", name="pk_log_entry"),
        sa.UniqueConstraint("payload_sha256", name="uq_log_entry_payload_sha256"),
        sa.CheckConstraint(
            "kind IN ('result', 'key_event', 'act')", name="ck_log_entry_kind_known"
        ),
    )
    op.create_index("ix_log_entry_submission_id", "log_entry", ["submission_id"])
    op.create_index("ix_log_entry_key_chain", "log_entry", ["key_chain"])
    op.create_table(
        "log_node",
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("level", "position", name="pk_log_node"),
    )
    op.create_table(
        "log_checkpoint",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("size", name="pk_log_checkpoint"),
    )
    op.create_table(
        "withdrawn",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("payload_sha256", sa.String(64), nullable=False),
        sa.Column("log_index", sa.BigInteger(), nullable=False),
        sa.Column("hardware", sa.String(400), nullable=False),
        sa.Column("hardware_slug", sa.String(400), nullable=False),
        sa.Column("workload", sa.String(64), nullable=False),
        sa.Column("workload_digest", sa.String(64), nullable=False),
        sa.Column("framework", sa.String(64), nullable=False),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("recipe", sa.String(16), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=False),
        sa.Column("precision", sa.String(32), nullable=False),
        sa.Column("data", sa.String(16), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_withdrawn"),
        sa.UniqueConstraint("payload_sha256", name="uq_withdrawn_payload_sha256"),
    )
    op.create_index("ix_withdrawn_workload_digest", "withdrawn", ["workload_digest"])
    with op.batch_alter_table("signing_key") as keys:
        keys.add_column(sa.Column("owner", sa.String(80), nullable=True))
        keys.add_column(sa.Column("first_key_id", sa.String(64), nullable=True))
        keys.add_column(sa.Column("revoked_reason", sa.Text(), nullable=True))
        keys.add_column(sa.Column("compromised_since", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("measurement") as measurements:
        measurements.add_column(sa.Column("log_index", sa.BigInteger(), nullable=True))
        measurements.add_column(sa.Column("challenge_id", sa.String(32), nullable=True))
        measurements.add_column(sa.Column("moderation", sa.String(16), nullable=True))
        measurements.add_column(sa.Column("moderation_reason", sa.Text(), nullable=True))
    _log_what_is_there(op.get_bind())
    with op.batch_alter_table("signing_key") as keys:
        keys.alter_column("owner", existing_type=sa.String(80), nullable=False)
        keys.alter_column("first_key_id", existing_type=sa.String(64), nullable=False)
        keys.drop_column("event_payload")
        keys.drop_column("event_signature")
        keys.drop_constraint("ck_signing_key_status_known", type_="check")
        keys.create_check_constraint(
            "ck_signing_key_status_known",
            "status IN ('active', 'pending', 'rotated', 'revoked')",
        )
        keys.create_foreign_key("fk_signing_key_owner_owner", "owner", ["owner"], ["label"])
    op.create_index("ix_signing_key_owner", "signing_key", ["owner"])
    with op.batch_alter_table("measurement") as measurements:
        measurements.alter_column("log_index", existing_type=sa.BigInteger(), nullable=False)
        measurements.create_unique_constraint("uq_measurement_log_index", ["log_index"])
        measurements.create_unique_constraint(
            "uq_measurement_challenge_id_cell_digest_repeat",
            ["challenge_id", "cell_digest", "repeat"],
        )
        measurements.create_check_constraint(
            "ck_measurement_moderation_known",
            "moderation IN ('flagged', 'quarantined', 'hidden', 'restored')",
        )
    op.create_index("ix_measurement_owner", "measurement", ["owner"])
    op.create_table(
        "challenge",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("nonce", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_challenge"),
        sa.ForeignKeyConstraint(
            ["key_id"], ["signing_key.key_id"], name="fk_challenge_key_id_signing_key"
        ),
    )
    op.create_index("ix_challenge_used_expires_at", "challenge", ["used", "expires_at"])


def _log_what_is_there(db: sa.Connection) -> None:
    edge: list[tuple[int, int, bytes]] = []
    count = 0

    def append(kind, payload, payload_type, key_id, signature, at, submission_id=None):
        nonlocal count
        salt, digest = secrets.token_bytes(32), hashlib.sha256(payload)
        commitment = hashlib.sha256(
            salt + digest.digest() + bytes.fromhex(key_id) + signature
        ).digest()
        document = {
            "payloadType": payload_type,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": key_id, "sig": base64.b64encode(signature).decode()}],
        }
        envelope = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        own = kind == "key_event"
        db.execute(
            sa.text(
                "INSERT INTO log_entry (log_index, kind, commitment, salt, payload_sha256,"
                " envelope, submission_id, key_chain, logged_at)"
                " VALUES (:i, :k, :c, :s, :p, :e, :r, :f, :t)"
            ),
            {
                "i": count, "k": kind, "c": commitment, "s": salt,
                "p": digest.hexdigest() if own else None, "e": envelope if own else None,
                "r": submission_id, "f": key_id if own else None, "t": at,
            },
        )
        level, position = 0, count
        value = hashlib.sha256(b"\x00" + commitment).digest()
        while True:
            db.execute(
                sa.text("INSERT INTO log_node (level, position, hash) VALUES (:l, :p, :h)"),
                {"l": level, "p": position, "h": value},
            )
            if not edge or edge[-1][0] != level:
                break
            value = hashlib.sha256(b"\x01" + edge.pop()[2] + value).digest()
            level, position = level + 1, position >> 1
        edge.append((level, position, value))
        count += 1

    keys = db.execute(
        sa.text(
            "SELECT key_id, event_payload, event_signature, enrolled_at FROM signing_key"
            " ORDER BY enrolled_at, key_id"
        )
    ).all()
    for key_id, payload, signature, at in keys:
        append("key_event", bytes(payload), KEY_EVENT, key_id, bytes(signature), at)
        owner = {"owner": f"key-{key_id[:12]}", "key": key_id}
        db.execute(sa.text("INSERT INTO owner (label, confirmed) VALUES (:owner, :no)"), owner | {"no": False})
        db.execute(
            sa.text(
                "UPDATE signing_key SET owner = :owner, first_key_id = :key WHERE key_id = :key"
            ),
            owner,
        )
        db.execute(sa.text("UPDATE measurement SET owner = :owner WHERE key_id = :key"), owner)
    results = db.execute(
        sa.text(
            "SELECT id, payload, payload_type, key_id, signature, received_at FROM submission"
            " ORDER BY received_at, id"
        )
    ).all()
    for identity, payload, payload_type, key_id, signature, at in results:
        db.execute(
            sa.text("UPDATE measurement SET log_index = :i WHERE submission_id = :id"),
            {"i": count, "id": identity},
        )
        append(
            "result", bytes(payload), payload_type, key_id, bytes(signature), at, identity
        )


def downgrade() -> None:
    db = op.get_bind()
    op.drop_table("challenge")
    op.drop_index("ix_measurement_owner", "measurement")
    with op.batch_alter_table("measurement") as measurements:
        measurements.drop_constraint("uq_measurement_log_index", type_="unique")
        measurements.drop_constraint(
            "uq_measurement_challenge_id_cell_digest_repeat", type_="unique"
        )
        measurements.drop_constraint("ck_measurement_moderation_known", type_="check")
        for name in ("log_index", "challenge_id", "moderation", "moderation_reason"):
            measurements.drop_column(name)
    op.drop_index("ix_signing_key_owner", "signing_key")
    with op.batch_alter_table("signing_key") as keys:
        keys.add_column(sa.Column("event_payload", sa.LargeBinary(), nullable=True))
        keys.add_column(sa.Column("event_signature", sa.LargeBinary(), nullable=True))
        keys.drop_constraint("fk_signing_key_owner_owner", type_="foreignkey")
        keys.drop_constraint("ck_signing_key_status_known", type_="check")
        for name in ("owner", "first_key_id", "revoked_reason", "compromised_since"):
            keys.drop_column(name)
    db.execute(sa.text("UPDATE signing_key SET status = 'revoked' WHERE status <> 'active'"))
    events = db.execute(
        sa.text("SELECT envelope FROM log_entry WHERE kind = 'key_event' ORDER BY log_index DESC")
    ).all()
    for (raw,) in events:
        document = json.loads(bytes(raw))
        for signature in document["signatures"]:
            db.execute(
                sa.text(
                    "UPDATE signing_key SET event_payload = :p, event_signature = :s"
                    " WHERE key_id = :k"
                ),
                {
                    "p": base64.b64decode(document["payload"]),
                    "s": base64.b64decode(signature["sig"]),
                    "k": signature["keyid"],
                },
            )
    with op.batch_alter_table("signing_key") as keys:
        keys.alter_column("event_payload", existing_type=sa.LargeBinary(), nullable=False)
        keys.alter_column("event_signature", existing_type=sa.LargeBinary(), nullable=False)
        keys.create_check_constraint(
            "ck_signing_key_status_known", "status IN ('active', 'revoked')"
        )
    for name in ("withdrawn", "log_checkpoint", "log_node", "log_entry", "invite", "owner"):
        op.drop_table(name)
