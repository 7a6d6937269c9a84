import { ACCESS_CASES } from './tenancyCases/access.js';
import { ALERT_CASES } from './tenancyCases/alerts.js';
import { BILL_CASES } from './tenancyCases/bills.js';
import { CALL_CASES } from './tenancyCases/calls.js';
import { CLAIM_CREDIT_CASES } from './tenancyCases/claimCredits.js';
import { CLAIM_EVIDENCE_CASES } from './tenancyCases/claimEvidence.js';
import { CLAIM_CASES } from './tenancyCases/claims.js';
import { CONNECTION_CASES } from './tenancyCases/connections.js';
import { DRAFT_CASES } from './tenancyCases/drafts.js';
import { RULE_CASES } from './tenancyCases/enforcementRules.js';
import { EXPLANATION_CASES } from './tenancyCases/explanations.js';
import { FINANCIAL_CASES } from './tenancyCases/financial.js';
import { MATCH_CASES } from './tenancyCases/matches.js';
import { ORGANIZATION_CASES } from './tenancyCases/organization.js';
import { POLICY_CASES } from './tenancyCases/policies.js';
import { POLICY_ALERT_CASES } from './tenancyCases/policyAlerts.js';
import { RUN_CASES } from './tenancyCases/runs.js';
import { SAVINGS_CASES } from './tenancyCases/savings.js';
import type { TenancyCase } from './tenancyCases/tenancyCase.js';
import { WEBHOOK_CASES } from './tenancyCases/webhooks.js';
import { WEIGHT_CASES } from './tenancyCases/weights.js';

/** A call of every function of db/ that concerns one organization, by the function's name. */
export const TENANCY_CASES: Readonly<Record<string, TenancyCase>> = {
  ...CALL_CASES,
  ...BILL_CASES,
  ...CONNECTION_CASES,
  ...RUN_CASES,
  ...MATCH_CASES,
  ...EXPLANATION_CASES,
  ...ORGANIZATION_CASES,
  ...ACCESS_CASES,
  ...ALERT_CASES,
  ...WEBHOOK_CASES,
  ...RULE_CASES,
  ...SAVINGS_CASES,
  ...POLICY_CASES,
  ...POLICY_ALERT_CASES,
  ...FINANCIAL_CASES,
  ...CLAIM_CASES,
  ...CLAIM_CREDIT_CASES,
  ...CLAIM_EVIDENCE_CASES,
  ...DRAFT_CASES,
  ...WEIGHT_CASES,
};

/** Take a handle and tell nothing of any organization. */
export const NEUTRAL: Readonly<Record<string, string>> = {
  OrgDb: 'the handle itself',
  SystemDb: 'the handle itself',
  unscoped: 'the way to the other handle, which asks for a reason',
  eventConditions: 'words of a statement; asks nothing',
  foldWhenBehind: 'asks whether a fold is due; what it then folds is the case foldUsage',
  countUnfolded: 'a count that bounds work; what is then folded is the case foldUsage',
  readClock: 'the clock',
  prepareSession: 'settings of a new connection',
  andOfProject: 'words of a statement; asks nothing',
  orgDbOf: 'the handle itself',
  runWork: 'the handle itself, for a step of a run',
  leaseTokens: 'the case leaseRateTokens on a handle of its own',
  answerOnce:
    'its statements are the cases takeIdempotencyKey, beginAttempt and storeAnswer; the rest is the handler’s',
  storeConnection: 'the cases insertBillingConnection, findSyncRun and recordAction, in one transaction',
  storeChange: 'the cases updateBillingConnection, openSync and recordAction, in one transaction',
  testConnection: 'asks a provider; its only statement is the case recordAction',
  fetchChunk: 'a step of a sync: the cases listSyncChunks, listSyncPages and recordFetchedPage',
  loadChunk: 'the case findSyncChunk',
  readChunk:
    'a step of a sync: the cases listCurrentCopies, beginApiSource, replaceApiDays and confirmApiDays',
  planSync: 'the case listFetchedDays',
  planSyncRun: 'a step of a sync: the cases findSyncRun, findBillingConnection and insertSyncChunks',
  takeSyncChunk: 'a step of a sync: fetchChunk and readChunk',
  leaveSyncChunk: 'the case failSyncChunk',
  finishSync: 'a step of a sync: the cases endRun, updateSyncOutcome and pruneSupersededCopies',
  failSync: 'a step of a sync: the cases endRun and updateSyncOutcome',
  requestScheduledSync: 'a step of a sync: the cases insertSyncRun and recordNextSync',
  startGapRunOfSync: 'a step of a sync: the cases insertGapRun, findOpenGapRun and recordGapRunOfSync',
  readImport: 'reads an import by the cases findBillingSource, insertBillingRows and finishBillingSource',
  discardImport: 'the cases failBillingSource, deleteBillingRows and deleteBillingPages',
  listEntities: 'one page by the predicate of the handle; the cases are the lists that call it',
  lockKeyRing: 'a lock by the organization’s id; reads no row',
  lockOpenRuns: 'a lock by the organization’s id; reads no row',
  lockFirstAccount: 'a lock by the organization’s id and a provider; reads no row',
  lockDrafting: 'a lock by the organization’s id and an account; reads no row',
};

/** Work across organizations, or of none: each for the reason given. */
export const ACROSS: Readonly<Record<string, string>> = {
  IngestWriter:
    'gathers the requests of each organization apart; its statements are the cases insertEvents and on',
  PriceBookHolder:
    'the price list is everybody’s; an organization’s own prices come by the case loadOwnPrices',
  listOrganizations: 'the operator looks over the instance',
  insertOrganization: 'an organization is not there before it',
  insertFirstOrganization: 'an organization is not there before it',
  findDemoOrganization: 'the operator’s demonstration, of which there is one',
  insertDemoOrganization: 'an organization is not there before it',
  insertDemoKey: 'the cases insertKey and recordAudit, in one transaction',
  removeDemoOrganization: 'an organization is not there after it; only a demonstration is removed',
  findKey: 'the key tells the organization',
  touchKeys: 'times of use of keys of any organization, gathered',
  listUnfoldedOrganizations: 'the fold looks for work',
  listSavingsDue: 'looks for work; what it opens is the case queueSavingsRun',
  listTouchedTraces: 'the sweep looks for work',
  sweepTraces: 'looks for work, then works for each organization on its own handle',
  listUnrepairedOrganizations: 'upkeep looks for work, as the fold does',
  listCallRepairs: 'the operator looks over the instance',
  freezeBills: 'a step of the case closePeriod, in its transaction',
  listScheduledConnections: 'the schedules of the whole instance',
  claimOutboxMessages: 'the dispatcher serves every organization',
  markOutboxDispatched: 'the dispatcher serves every organization',
  retryOutboxMessage: 'the dispatcher serves every organization',
  killOutboxMessage: 'the dispatcher serves every organization',
  pruneOutbox: 'upkeep by age',
  deleteOrphanedPages: 'upkeep: chunks that belong to no import',
  pruneCallSpans: 'upkeep by age',
  refreshStatistics: 'statistics of whole tables, without a row of any',
  listUnlearnedOrganizations: 'the sweeper looks for outcomes that nobody learned from',
  listStalledRuns: 'the sweeper looks for runs that nobody works on',
  listOverdueEndpoints: 'the sweeper looks for webhooks that nobody sends',
  listOverdueClaims: 'the sweeper looks for notices that nobody gives',
  ClaimWatch: 'the sweeper looks for claims that no workflow keeps',
  listOpenClaims: 'the sweeper looks for claims that no workflow keeps',
  readOwnPriceRevisions: 'how new the prices of each organization are, to know whose book is old',
  getDatabaseState: 'whether the database answers',
  findFullStorage: 'whether the disk of the database is full',
  findBacklog: 'numbers of the instance for its operator',
  countSealedByKey: 'the secret key belongs to the instance',
  listSealedOtherwise: 'the secret key belongs to the instance',
  replaceSealed: 'the secret key belongs to the instance',
  forgetSealed: 'the secret key belongs to the instance',
  clearSealed: 'the secret key belongs to the instance',
  AuthFailures: 'writes by the case recordAudit into the organization of the refused key',
  KeyUses: 'times of use of keys of any organization, gathered',
  anchorAuditLogs: 'anchors the log of every organization',
  forgetRetentionRuns: 'upkeep by age',
  runRetentionStep: 'upkeep by age',
  failRetentionStep: 'upkeep by age',
  dropOldKeysWhenUnused: 'the secret key belongs to the instance',
  beginPriceChange: 'the price list is everybody’s',
  findPriceState: 'the price list is everybody’s',
  insertPricePeriods: 'the price list is everybody’s',
  listRecordedModels: 'the price list is everybody’s',
  recordPriceState: 'the price list is everybody’s',
  upsertPriceModels: 'the price list is everybody’s',
  withdrawPriceModels: 'the price list is everybody’s',
  insertPriceImport: 'the price list is everybody’s',
  listPriceImportIds: 'the price list is everybody’s',
  listPriceImports: 'the price list is everybody’s',
  loadPriceBook: 'the price list is everybody’s',
  readPriceState: 'the price list is everybody’s',
  previewPriceImport: 'the price list is everybody’s',
  storePriceImport: 'the price list is everybody’s',
  seedPrices: 'the price list is everybody’s',
  ensurePartitions: 'tables are the owner’s work',
  replacePartitions: 'tables are the owner’s work',
  pruneRateBuckets: 'upkeep by age',
  pruneIdempotencyKeys: 'upkeep by age',
  removeOldEvents: 'upkeep by age',
  removeOldPayloads: 'upkeep by age',
  removeOldGapRuns:
    'upkeep by age: test/usecases/installation/gapRunRetention.test.ts shows that it goes by organization',
  removeOldSavings: 'upkeep by age; results that gave way are the case emptyReplacedSavings',
  removeOldAlerts: 'upkeep by age',
  listDoublyReportedOrganizations: 'upkeep looks for work, as the fold does',
  reportDoubleInstrumentation: 'looks for work, then works by the case reportDoublesOf',
  repairCalls: 'looks for work, then works by the case repairNextCalls',
  foldOften: 'the case foldUsage, repeated',
  foldAll: 'looks for work; what it folds is the case foldUsage',
  analyzeGrownTables: 'statistics of whole tables, without a row of any',
  analyzeAfterBulk: 'statistics of whole tables, without a row of any',
  removeOldWebhookMessages: 'upkeep by age',
  emptyPages: 'tables are the owner’s work',
  dropEventMonth: 'tables are the owner’s work',
  finishTakenOut: 'tables are the owner’s work',
  listPastPartitions: 'tables are the owner’s work',
  withOwner: 'tables are the owner’s work',
  takeOutMonth: 'tables are the owner’s work',
  listTakenOut: 'tables are the owner’s work',
  startRetentionStep: 'notes of upkeep, which is of the instance',
  noteRemoved: 'notes of upkeep, which is of the instance',
  endRetentionStep: 'notes of upkeep, which is of the instance',
  pruneRetentionRuns: 'notes of upkeep, which is of the instance',
  listRetentionState: 'notes of upkeep, which is of the instance',
  listOrganizationIds: 'upkeep goes through all organizations',
  removeSlices: 'upkeep by age',
  listAnswersSealedOtherwise: 'the secret key belongs to the instance',
  replaceSealedAnswer: 'the secret key belongs to the instance',
  checkpointAuditLog: 'upkeep by age, of each organization’s chain in turn',
  listAuditHeads: 'the anchor keeps the ends of all chains',
  resignAuditCheckpoints: 'the secret key belongs to the instance',
  hasProjects: 'a step of the case foldUsage, in its transaction',
  foldProjects: 'a step of the case foldUsage, in its transaction',
};
