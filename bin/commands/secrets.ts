import { Command } from 'commander';
import {
  dropOldKeysWhenUnused,
  listAnswersSealedOtherwise,
  listSealedOtherwise,
  replaceSealed,
  replaceSealedAnswer,
  type SealedSecret,
} from '../../db/access/sealedSecrets.js';
import type { Database } from '../../db/client.js';
import { answerBinding } from '../../domain/access/idempotencyKey.js';
import { findSealedText, resealText } from '../../domain/billing/connections.js';
import { findSecretsText, sealSecretsText } from '../../domain/webhooks/secret.js';
import type { Config } from '../../platform/config.js';
import {
  ensureSecretKeyFile,
  readSecretKeyFile,
  replaceSecretKeys,
} from '../../platform/embedded/secretKeyFile.js';
import { makeSecretKey } from '../../platform/secretBox.js';
import { describeSealed, type SealedCounts, SecretKeys } from '../../platform/secretKeys.js';
import { forgetSealed } from '../../usecases/billing/connectionTurns.js';
import { withToolDatabase } from '../service/toolDatabase.js';
import { print, type Terminal } from '../terminal/terminal.js';
import { recordRotation, renewAuditSignatures } from '../wiring/auditAnchors.js';
import { requireSecretKeys } from '../wiring/requirements.js';

/** Replaces the key that encrypts the providers' credentials. Prints no key. */
export function command(terminal: Terminal): Command {
  return new Command('secrets').addCommand(
    new Command('rotate')
      .description('seal all stored secrets under a new key')
      .option('--forget-unreadable', 'give up those that no key opens')
      .action(async ({ forgetUnreadable = false }: { forgetUnreadable?: boolean }) => {
        const config = terminal.readConfig();
        const outcome = await withToolDatabase(config, (database) =>
          rotateSecrets(config, database, forgetUnreadable),
        );
        print(terminal, outcome.sentences.join('\n'));
        if (!outcome.isWhole) terminal.exitCode = 1;
      }),
  );
}

/** Result of a rotation, and whether secrets remain that no key decrypts. */
interface RotationOutcome {
  sentences: string[];
  isWhole: boolean;
}

/** Most rounds, each for secrets that were encrypted with the old key meanwhile. */
const ROUNDS_MAX = 20;
const ANSWERS_A_BATCH = 500;

/**
 * Encrypts every stored credential with a new key. With an embedded Postgres the new key is created here and precedes
 * the old one in the key file until nothing needs the old one; running processes read it there, and after a kill at any
 * moment the next call continues. With an external database everything is encrypted with the first configured key.
 */
export async function rotateSecrets(
  config: Config,
  database: Database,
  forgetUnreadable: boolean,
): Promise<RotationOutcome> {
  const isOurs =
    config.databaseUrl === undefined && config.secretKey === undefined && config.secretKeyFile === undefined;
  if (!isOurs) return resealUnderSetting(config, database, forgetUnreadable);
  const file = ensureSecretKeyFile(config.dataDir);
  const before = readSecretKeyFile(file);
  // More than one key: an earlier rotation did not finish, and continues now.
  if (before.length === 1) replaceSecretKeys(file, [makeSecretKey(), ...before]);
  const keys = SecretKeys.fromFile(file);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const { done, unreadable } = await resealAll(keys, database, forgetUnreadable);
    if (unreadable) return unfinished(unreadable);
    await renewAuditSignatures(database, keys, config.auditAnchorDir);
    const [current] = readSecretKeyFile(file);
    const dropped = await dropOldKeysWhenUnused(database, keys.currentId, () =>
      replaceSecretKeys(file, current === undefined ? [] : [current]),
    );
    if (dropped) {
      await recordRotation(database, keys);
      return { sentences: [resealed(done, keys), 'The old key is gone from the file.'], isWhole: true };
    }
  }
  return {
    sentences: [
      'Secrets keep being sealed with the old key: is a process running that uses another key file? Call this again.',
    ],
    isWhole: false,
  };
}

async function resealUnderSetting(
  config: Config,
  database: Database,
  forgetUnreadable: boolean,
): Promise<RotationOutcome> {
  const keys = requireSecretKeys(config);
  const { done, unreadable } = await resealAll(keys, database, forgetUnreadable);
  if (unreadable) return unfinished(unreadable);
  await renewAuditSignatures(database, keys, config.auditAnchorDir);
  if (done > 0) await recordRotation(database, keys);
  const older = [...keys.ids].filter((id) => id !== keys.currentId);
  const next =
    older.length > 0
      ? `Once every process has been started with this TRUEUP_SECRET_KEY, and this command finds nothing left to do, ${older.join(', ')} may be taken out of it.`
      : 'To change the key, put a new one before this one in TRUEUP_SECRET_KEY, start every process with both, and call this again.';
  return { sentences: [resealed(done, keys), next], isWhole: true };
}

function resealed(done: number, keys: SecretKeys): string {
  return `${done} secrets were sealed again; all are sealed with ${keys.currentId} now.`;
}

function unfinished(unreadable: SealedCounts): RotationOutcome {
  const what = describeSealed(unreadable);
  return {
    sentences: [
      `${what[0]?.toUpperCase()}${what.slice(1)} open with no key at hand: put the key that sealed them behind the current one, or give them up with ./trueup secrets rotate --forget-unreadable. No key was removed.`,
    ],
    isWhole: false,
  };
}

/** The functions that decrypt the secrets of each kind, and encrypt them for their owners. */
const SEALS = {
  connection: { find: findSealedText, seal: resealText },
  webhook: { find: findSecretsText, seal: sealSecretsText },
} as const;

function resealOne(keys: SecretKeys, { kind, orgId, subjectId, ciphertext }: SealedSecret) {
  const text = SEALS[kind].find(keys, orgId, subjectId, ciphertext);
  return text === undefined ? undefined : SEALS[kind].seal(keys, orgId, subjectId, text);
}

/** `unreadable`: the secrets that no key decrypted and that were not given up; undefined: there are none. */
async function resealAll(
  keys: SecretKeys,
  database: Database,
  forgetUnreadable: boolean,
): Promise<{ done: number; unreadable: SealedCounts | undefined }> {
  let done = 0;
  let unreadable: SealedCounts | undefined;
  for (const sealed of await listSealedOtherwise(database, keys.currentId)) {
    const again = resealOne(keys, sealed);
    if (again) {
      if (await replaceSealed(database, sealed, again)) done += 1;
    } else if (forgetUnreadable) await forgetSealed(database, sealed);
    else unreadable = { ...unreadable, [sealed.kind]: (unreadable?.[sealed.kind] ?? 0) + 1 };
  }
  // While a key is missing it may still be restored.
  if (!unreadable) await resealAnswers(keys, database);
  return { done, unreadable };
}

/**
 * Encrypts stored answers again. One that no key decrypts is given up: the record of its request stays, and expires
 * after a day.
 */
async function resealAnswers(keys: SecretKeys, database: Database): Promise<void> {
  for (;;) {
    const sealed = await listAnswersSealedOtherwise(database, keys.currentId, ANSWERS_A_BATCH);
    for (const answer of sealed) {
      const binding = answerBinding(answer.orgId, answer.scope);
      const text = keys.open(answer.ciphertext, binding);
      await replaceSealedAnswer(database, answer, text === undefined ? null : keys.seal(text, binding));
    }
    if (sealed.length < ANSWERS_A_BATCH) return;
  }
}
