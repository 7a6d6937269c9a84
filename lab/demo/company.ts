/** Demo Labs: its accounts, teams, keys and uses of models. */
import type { DemoProvider } from './prices.js';
import { SCHEDULE } from './schedule.js';

export const ORGANIZATION_NAME = 'Demo Labs';

export const ACCOUNTS: Readonly<Record<DemoProvider, string>> = {
  openai: 'org-DemoLabs0000000000000000',
  anthropic: 'de300000-0000-4000-8000-00000000de30',
};

export interface DemoKey {
  provider: DemoProvider;
  id: string;
  name: string;
  /** Project at OpenAI, workspace at Anthropic; null: Anthropic's default workspace. */
  project: string | null;
  team: string | null;
}

const key = (
  provider: DemoProvider,
  id: string,
  name: string,
  project: string | null,
  team: string | null,
): DemoKey => ({ provider, id, name, project, team });

/** Every key that Demo Labs has registered. */
export const KEYS = {
  openaiSupport: key('openai', 'key_DemoSupport01', 'support production', 'proj_DemoSupport', 'support'),
  openaiSearch: key('openai', 'key_DemoSearch01', 'search production', 'proj_DemoSearch', 'search'),
  openaiGrowth: key('openai', 'key_DemoGrowth01', 'growth production', 'proj_DemoGrowth', 'growth'),
  openaiPlatform: key('openai', 'key_DemoPlatform01', 'platform production', 'proj_DemoPlatform', 'platform'),
  openaiNightly: key('openai', 'key_DemoNightly01', 'nightly jobs', 'proj_DemoSupport', null),
  anthropicSupport: key(
    'anthropic',
    'apikey_01DemoSupport',
    'support production',
    'wrkspc_01DemoSupport',
    'support',
  ),
  anthropicSearch: key(
    'anthropic',
    'apikey_01DemoSearch',
    'search production',
    'wrkspc_01DemoSearch',
    'search',
  ),
  anthropicGrowth: key(
    'anthropic',
    'apikey_01DemoGrowth',
    'growth production',
    'wrkspc_01DemoGrowth',
    'growth',
  ),
  anthropicPlatform: key('anthropic', 'apikey_01DemoPlatform', 'platform production', null, 'platform'),
} as const;

/** An unapproved name that some calls request; the usual model answers. */
export const PREVIEW_MODEL = 'claude-haiku-5-preview';

/** A key on OpenAI's bill that Demo Labs has not registered. */
export const STRAY_KEY = key('openai', 'key_Stray7f3a91', '', 'proj_DemoGrowth', null);

/** One use of a model: number and size of calls, and the share of batches. */
export interface Traffic {
  name: string;
  key: DemoKey;
  team: string | null;
  feature: string;
  /** The model's name on bills. */
  model: string;
  callsPerWorkday: number;
  /** All input tokens of a call, including cached ones. */
  input: readonly [number, number];
  output: readonly [number, number];
  batchShare: number;
  /** Share of calls whose input exceeds the model's ordinary price range. */
  longShare: number;
  /** Maximum cached share of a call's input. */
  cachedShareMax: number;
  /** First day; default the demo's first day. */
  fromOffset?: number;
  /** Runs on weekends as on working days. */
  everyDay?: boolean;
}

const traffic = (
  name: string,
  of: Pick<Traffic, 'key' | 'feature' | 'model' | 'callsPerWorkday' | 'input' | 'output'> & Partial<Traffic>,
): Traffic => ({ name, team: of.key.team, batchShare: 0, longShare: 0, cachedShareMax: 0.85, ...of });

export const TRAFFIC: readonly Traffic[] = [
  traffic('answer-bot', {
    key: KEYS.anthropicSupport,
    feature: 'answer-bot',
    model: 'claude-sonnet-5-5',
    callsPerWorkday: 95,
    input: [60_000, 190_000],
    output: [6_000, 30_000],
  }),
  traffic('ticket-triage', {
    key: KEYS.openaiSupport,
    feature: 'ticket-triage',
    model: 'gpt-5-mini-2025-08-07',
    callsPerWorkday: 72,
    input: [120_000, 360_000],
    output: [20_000, 64_000],
    batchShare: 0.55,
  }),
  traffic('semantic-search', {
    key: KEYS.openaiSearch,
    feature: 'semantic-search',
    model: 'gpt-6-sol',
    callsPerWorkday: 92,
    input: [90_000, 250_000],
    output: [6_000, 30_000],
    cachedShareMax: 0.6,
  }),
  traffic('search-summaries', {
    key: KEYS.anthropicSearch,
    feature: 'semantic-search',
    model: 'claude-haiku-4-5-20251001',
    callsPerWorkday: 55,
    input: [70_000, 190_000],
    output: [8_000, 36_000],
  }),
  traffic('content-drafts', {
    key: KEYS.openaiGrowth,
    feature: 'content-drafts',
    model: 'gpt-5.6-terra',
    callsPerWorkday: 60,
    input: [80_000, 260_000],
    output: [20_000, 70_000],
    cachedShareMax: 0.5,
  }),
  traffic('content-variants', {
    key: KEYS.anthropicGrowth,
    feature: 'content-drafts',
    model: 'claude-haiku-4-5-20251001',
    callsPerWorkday: 62,
    input: [60_000, 180_000],
    output: [20_000, 62_000],
    batchShare: 0.75,
  }),
  traffic('code-review', {
    key: KEYS.anthropicPlatform,
    feature: 'code-review',
    model: 'claude-opus-5',
    callsPerWorkday: 105,
    input: [70_000, 196_000],
    output: [14_000, 62_000],
  }),
  traffic('code-search', {
    key: KEYS.openaiPlatform,
    feature: 'code-review',
    model: 'gpt-6-sol',
    callsPerWorkday: 42,
    input: [60_000, 240_000],
    output: [8_000, 36_000],
    longShare: 0.15,
  }),
  traffic('nightly-jobs', {
    key: KEYS.openaiNightly,
    feature: 'ticket-triage',
    model: 'gpt-5-mini-2025-08-07',
    callsPerWorkday: 36,
    input: [150_000, 360_000],
    output: [24_000, 64_000],
    batchShare: 0.3,
    fromOffset: SCHEDULE.unlabelled.first,
    everyDay: true,
  }),
];

/** Demo Labs' contract with Anthropic. */
export const CONTRACT = {
  provider: 'anthropic' as const,
  discountPercent: 12,
  /** In force from this day on. */
  fromOffset: -75,
  source: { document: 'Order form DL-2026-017', clause: '3.2' },
};
