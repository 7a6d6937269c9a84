/**
 * Plans a company: four providers' accounts, their models, and for each model two or three services that differ in
 * their hours, prompts, caching and faults of reporting. Nothing here depends on what providers book.
 */
import { DAY } from './calendar.js';
import type { Dice } from './dice.js';
import { stepOn, TARIFFS, type Tariff, type Tier } from './tariffs.js';

/** First and last billed day, numbers since 1970. */
export interface Period {
  first: number;
  last: number;
}

/** A fault of a service's reports, half-open in Unix seconds. */
export interface Fault {
  form:
    | 'silent'
    | 'loses_some'
    | 'loses_cut_output'
    | 'cached_inside_input'
    | 'knows_no_cache'
    | 'tier_as_requested'
    | 'batch_unflagged'
    | 'hides_reasoning'
    | 'names_no_answer';
  from: number;
  to: number;
  /** The affected share of calls. */
  share: number;
}

export interface Service {
  name: string;
  keyId: string;
  /** Project, workspace, linked account or resource of the bill. */
  project: string;
  /** Active hours of the day; it may span midnight. */
  fromHour: number;
  hours: number;
  weekendShare: number;
  callsPerDay: number;
  /** Whole input of a call: the logarithm is uniform between these. */
  least: number;
  most: number;
  readShare: number;
  writeShare: number;
  keepsLong: boolean;
  outLeast: number;
  outMost: number;
  reasoningShare: number;
  batchShare: number;
  tier: Tier;
  tierShare: number;
  elsewhereShare: number;
  longShare: number;
  errorShare: number;
  cutShare: number;
  /** The model's id in its reports. */
  toldModel: string;
  faults: readonly Fault[];
}

export interface Account {
  provider: string;
  accountId: string;
  /** Hours that the days of the bill begin before UTC's days; the provider states days only. */
  clockHours: number;
  /** Days of which the costs of the last hours are charged on the next day, with the first such hour. */
  lateFrom: ReadonlyMap<number, number>;
}

export interface Series {
  id: string;
  account: Account;
  tariff: Tariff;
  services: readonly Service[];
  /** The paid part of list prices, and whether the company has entered the contract. */
  perMille: number;
  isContractEntered: boolean;
}

interface Site {
  provider: string;
  accountId: string;
  models: number;
  projects: readonly string[];
}

const SITES: readonly Site[] = [
  { provider: 'openai', accountId: 'org-fieldstone', models: 4, projects: ['proj_till', 'proj_loom'] },
  {
    provider: 'anthropic',
    accountId: '5d1c7f0e-kiln',
    models: 4,
    projects: ['wrkspc_slate', 'wrkspc_flint'],
  },
  {
    provider: 'aws_bedrock',
    accountId: '604112907733',
    models: 3,
    projects: ['604112907741', '604112907758'],
  },
  {
    provider: 'azure_openai',
    accountId: '7be2a4c0-91d3-4f68-a5be-30c2d9e81f47',
    models: 3,
    projects: ['spruce-east', 'spruce-west'],
  },
];

/** The linked account and the keys that the company does not know end in these. */
export const FOREIGN_ACCOUNT = '604112999900';

/** The series of a company. `size` is a factor on the number of models. */
export function planCompany(dice: Dice, period: Period, size: number): Series[] {
  const series: Series[] = [];
  for (const site of SITES) {
    const account = planAccount(dice, site, period);
    const offered = TARIFFS.filter(({ provider }) => provider === site.provider);
    const wanted = Math.max(1, Math.round(site.models * size));
    const models = dice.someOf(offered, Math.min(wanted, offered.length));
    const contracted = dice.happens(0.7) ? dice.oneOf(models) : undefined;
    for (const model of models) {
      const hasContract = model === contracted && !model.isDocumented;
      series.push({
        id: `${site.provider}/${model.told}`,
        account,
        tariff: model,
        services: planServices(dice, site, model, period),
        perMille: hasContract ? 1_000 - 5 * dice.count(6, 44) : 1_000,
        isContractEntered: hasContract && dice.happens(0.7),
      });
    }
  }
  return series;
}

/** A cloud's days may begin at another hour. OpenAI and Anthropic report hours, in UTC. */
function planAccount(dice: Dice, { provider, accountId }: Site, period: Period): Account {
  const isCloud = provider === 'aws_bedrock' || provider === 'azure_openai';
  const clockHours = isCloud && dice.happens(0.5) ? dice.oneOf([-8, -7, -5, 1, 2, 8, 9]) : 0;
  const lateFrom = new Map<number, number>();
  if (!isCloud && dice.happens(0.6))
    for (let day = period.first; day < period.last; day += 1)
      if (dice.happens(0.08)) lateFrom.set(day, dice.count(15, 22));
  return { provider, accountId, clockHours, lateFrom };
}

function planServices(dice: Dice, site: Site, model: Tariff, period: Period): Service[] {
  const count = dice.count(2, 3);
  const hasSilentProfile = site.provider === 'aws_bedrock' && model.elsewhere > 1_000 && dice.happens(0.5);
  return Array.from({ length: count }, (_, at) => {
    const name = `${model.told.replaceAll(/[^a-z0-9]+/g, '-')}-${['desk', 'mill', 'night'][at]}`;
    const project = site.projects[at % site.projects.length] as string;
    const service = planService(dice, { site, model, name, project, isNight: at === 2 });
    return {
      ...service,
      toldModel: hasSilentProfile ? model.told : service.toldModel,
      faults: planFaults(dice, service, period),
    };
  });
}

function keyOf({ provider }: Site, name: string, project: string): string {
  if (provider === 'openai') return `key_${name.replaceAll('-', '')}`;
  if (provider === 'anthropic') return `apikey_${name.replaceAll('-', '')}`;
  return project;
}

function planService(
  dice: Dice,
  of: { site: Site; model: Tariff; name: string; project: string; isNight: boolean },
): Omit<Service, 'faults'> {
  const { model, site, isNight } = of;
  const last = model.steps.at(-1);
  const tiers = (['flex', 'priority'] as const).filter((tier) => model.steps.every((step) => step[tier]));
  const least = dice.magnitude(900, 12_000);
  const canWrite = (last?.standard[2] ?? 0) > 0;
  const hasLong = model.steps.every((step) => step.long);
  return {
    name: of.name,
    keyId: keyOf(site, of.name, of.project),
    project: of.project,
    fromHour: isNight ? dice.count(20, 23) : dice.count(5, 11),
    hours: isNight ? dice.count(5, 8) : dice.count(8, 13),
    weekendShare: isNight ? 1 : dice.within(0.15, 0.7),
    callsPerDay: dice.magnitude(18, 80),
    least,
    most: Math.min(0.95 * Math.min(model.longAbove, 180_000), least * dice.within(3, 14)),
    readShare: dice.happens(0.7) ? dice.within(0.1, 0.8) : 0,
    writeShare: canWrite && dice.happens(0.65) ? dice.within(0.02, 0.18) : 0,
    keepsLong: site.provider === 'anthropic' && dice.happens(0.35),
    outLeast: dice.magnitude(60, 500),
    outMost: dice.magnitude(900, 5_000),
    reasoningShare: dice.happens(0.4) ? dice.within(0.2, 0.7) : 0,
    batchShare: last?.batch && dice.happens(isNight ? 0.7 : 0.25) ? dice.within(0.15, 0.8) : 0,
    tier: tiers.length > 0 ? dice.oneOf(tiers) : 'standard',
    tierShare: tiers.length > 0 && dice.happens(0.3) ? dice.within(0.1, 0.5) : 0,
    elsewhereShare: model.elsewhere > 1_000 && dice.happens(0.5) ? dice.within(0.15, 0.9) : 0,
    longShare: hasLong && dice.happens(0.5) ? dice.within(0.005, 0.03) : 0,
    errorShare: dice.within(0.01, 0.09),
    cutShare: dice.within(0, 0.05),
    toldModel: toldModelOf(model),
  };
}

/** Calls of Bedrock name the profile, which the report of a call completes (`tell`). */
const toldModelOf = (model: Tariff): string =>
  model.provider === 'aws_bedrock' && model.elsewhere > 1_000 ? '' : model.told;

/** Two fifths of the services have a fault, a quarter of these a second one. */
function planFaults(dice: Dice, service: Omit<Service, 'faults'>, period: Period): Fault[] {
  const forms: Fault['form'][] = ['silent', 'silent', 'loses_some', 'loses_cut_output', 'names_no_answer'];
  if (service.readShare > 0) forms.push('cached_inside_input', 'knows_no_cache');
  if (service.batchShare > 0) forms.push('batch_unflagged');
  if (service.reasoningShare > 0) forms.push('hides_reasoning');
  if (service.tierShare === 0 && service.tier === 'priority') forms.push('tier_as_requested');
  const count = dice.happens(0.4) ? (dice.happens(0.25) ? 2 : 1) : 0;
  return dice.someOf(forms, count).map((form) => planFault(dice, form, period));
}

/** Two thirds of the faults begin with a release and last; the others last hours or days, like an outage. */
function planFault(dice: Dice, form: Fault['form'], period: Period): Fault {
  const isLasting = dice.happens(0.65);
  const begin = (period.first - 1) * DAY;
  const end = (period.last + 1) * DAY;
  const from = dice.happens(0.4) ? begin : Math.floor(dice.within(begin, end));
  const short = from + Math.floor(dice.magnitude(3 * 3_600, 6 * DAY));
  const share = form === 'loses_some' ? dice.within(0.02, 0.3) : form === 'loses_cut_output' ? 0.2 : 1;
  return { form, from, to: isLasting ? end : Math.min(end, short), share };
}

/** Whether the model's price changes within the days, in both directions of time from it at least `days`. */
export function stepWithin(tariff: Tariff, { first, last }: Period, days: number): boolean {
  return stepOn(tariff, first + days) !== stepOn(tariff, last - days);
}
