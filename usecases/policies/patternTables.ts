import type { OrgDb } from '../../db/orgDb.js';
import { listPolicies, type StoredPolicy } from '../../db/policies/policies.js';
import {
  buildTables,
  type PatternTables,
  patternId,
  patternsVersion,
} from '../../domain/policies/patternAutomata.js';

/** The banned patterns in the form that wrappers evaluate. */
export interface WrapperPatterns extends PatternTables {
  version: string;
  /** The evaluated patterns. */
  patterns: { index: number; id: string }[];
}

type PatternPolicy = Extract<StoredPolicy, { type: 'banned_patterns' }>;

/** Lists of patterns whose tables are kept, at most a few MB each. */
const KEPT_MAX = 32;
const kept = new Map<string, Promise<PatternTables>>();

/** The patterns of the enabled policy; without one the version alone. */
export async function getWrapperPatterns(orgDb: OrgDb): Promise<WrapperPatterns> {
  const policy = findPatternPolicy(await listPolicies(orgDb));
  if (!policy?.enabled)
    return { version: patternsVersion([], []), patterns: [], automata: [], notEvaluated: [] };
  const { regexes } = policy.config;
  const tables = await tablesOf(policy);
  const notSearched = new Set([...policy.skipped.map(({ index }) => index), ...tables.notEvaluated]);
  const patterns = regexes.flatMap((regex, index) =>
    notSearched.has(index) ? [] : [{ index, id: patternId(regex) }],
  );
  return { ...tables, version: patternsVersion(regexes, policy.skipped), patterns };
}

/** Indexes of patterns that the API searches for and wrappers do not; of other policies none. */
export async function listNotEvaluated(policy: StoredPolicy): Promise<readonly number[]> {
  return policy.type === 'banned_patterns' ? (await tablesOf(policy)).notEvaluated : [];
}

function findPatternPolicy(policies: readonly StoredPolicy[]): PatternPolicy | undefined {
  return policies.find((policy): policy is PatternPolicy => policy.type === 'banned_patterns');
}

/** Builds the tables of a list once for all requests, in turns, because it can take a second. */
function tablesOf({ config, skipped }: PatternPolicy): Promise<PatternTables> {
  const version = patternsVersion(config.regexes, skipped);
  const known = kept.get(version);
  // The list used last is dropped last.
  kept.delete(version);
  const tables = known ?? build(config.regexes, skipped);
  kept.set(version, tables);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  return tables;
}

async function build(regexes: readonly string[], skipped: PatternPolicy['skipped']): Promise<PatternTables> {
  const work = buildTables(regexes, skipped);
  for (;;) {
    const turn = work.next();
    if (turn.done) return turn.value;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
