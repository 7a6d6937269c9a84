import type { TokenClass } from '../../events/event.js';
import { decimalFromPico, decimalFromScaled, type Pico, usdNumberFromPico } from '../../money.js';
import type { PricedModel } from '../../pricing/pricedModel.js';
import type { Circumstances, DayRates } from '../../reconciliation/audit/dayRates.js';
import type { EvidencePriceSource, EvidenceRate } from './claimEvidence.js';

/**
 * The public price collections that list prices rest on, and where each can be read. What they say is checked against each
 * other; their own pages name the provider's price page of each model.
 */
const COLLECTIONS: Readonly<Record<string, { name: string; url: string }>> = {
  litellm: {
    name: 'LiteLLM model price map',
    url: 'https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json',
  },
  genai_prices: { name: 'pydantic genai-prices', url: 'https://github.com/pydantic/genai-prices' },
  models_dev: { name: 'models.dev', url: 'https://models.dev' },
};

/** Where providers publish their prices, for whoever wants to compare; nothing is read from there. */
const PRICE_PAGES: Readonly<Record<string, string>> = {
  openai: 'https://platform.openai.com/docs/pricing',
  anthropic: 'https://platform.claude.com/docs/en/about-claude/pricing',
  aws_bedrock: 'https://aws.amazon.com/bedrock/pricing/',
  azure_openai: 'https://azure.microsoft.com/pricing/details/cognitive-services/openai-service/',
  google: 'https://cloud.google.com/vertex-ai/generative-ai/pricing',
  mistral: 'https://mistral.ai/pricing',
  xai: 'https://docs.x.ai/docs/models',
};

/** A contract's percentage is scaled by 1e12. */
const PERCENT_DIGITS = 12;

interface Asked {
  rates: DayRates;
  /** Prices without what the organization agreed. */
  list: DayRates;
  model: string;
  tokenClass: TokenClass;
  circumstances: Circumstances;
  discountPercent: number | null;
}

/** The rates that a claim's cells ask for, each once, in the order in which they were first asked for. */
export class RateRegister {
  readonly #rates = new Map<string, EvidenceRate>();
  readonly #sources = new Map<string, EvidencePriceSource>();

  /** Id of the rate that holds, and the rate; undefined where there is none. */
  idOf(asked: Asked): { id: string; rate: Pico } | undefined {
    const found = asked.rates.rate(asked.model, asked.tokenClass, asked.circumstances);
    const priced = asked.rates.priceOf(asked.model);
    if (!found || !priced) return undefined;
    const { serviceTier, isBatch, longContext, contextBand, region } = asked.circumstances;
    const isLong = longContext || contextBand > 0;
    const { version, entry } = priced;
    // A contract for several models is one version.
    const key = JSON.stringify([
      version.id,
      entry.provider,
      entry.model,
      version.effectiveFrom,
      asked.tokenClass,
      serviceTier,
      isBatch,
      isLong,
      region,
      asked.discountPercent,
      String(found.rate),
    ]);
    const known = this.#rates.get(key);
    if (known) return { id: known.id, rate: found.rate };
    const id = `rate-${this.#rates.size + 1}`;
    this.#rates.set(key, {
      id,
      provider: entry.provider,
      model: entry.model,
      token_class: asked.tokenClass,
      service_tier: serviceTier,
      is_batch: isBatch,
      long_context: isLong,
      region,
      usd_per_mtok: usdNumberFromPico(found.rate),
      usd_per_mtok_exact: decimalFromPico(found.rate),
      effective_from: version.effectiveFrom,
      effective_to: version.effectiveTo,
      kind: priced.laid?.statement.kind ?? 'list',
      agreement: priced.agreement,
      retrieved_on: priced.laid ? null : entry.facts.asOf,
      source_keys: this.#sourcesOf(priced),
      price_page_url: priced.laid ? null : (PRICE_PAGES[entry.provider] ?? null),
      contract: contractOf(priced),
      contract_discount_percent: discountOf(priced),
      list_usd_per_mtok_exact: isAgreed(priced) ? listRate(asked) : null,
      untold_discount_percent: asked.discountPercent,
    });
    return { id, rate: found.rate };
  }

  get rates(): EvidenceRate[] {
    return [...this.#rates.values()];
  }

  get sources(): EvidencePriceSource[] {
    return [...this.#sources.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #sourcesOf({ version, laid }: PricedModel): string[] {
    const keys = version.source.split(', ').filter((key) => key !== '');
    for (const key of keys) {
      const known = COLLECTIONS[key];
      const proof = laid?.statement.proof?.url ?? null;
      this.#sources.set(key, { key, name: known?.name ?? key, url: known?.url ?? proof });
    }
    return keys;
  }
}

function contractOf({ laid }: PricedModel): EvidenceRate['contract'] {
  return laid?.statement.proof ?? null;
}

const isAgreed = ({ laid }: PricedModel): boolean => laid?.statement.kind === 'contract';

function discountOf(priced: PricedModel): string | null {
  const terms = isAgreed(priced) ? priced.laid?.statement.terms : undefined;
  return terms && 'discountPercent' in terms
    ? decimalFromScaled(terms.discountPercent, PERCENT_DIGITS)
    : null;
}

function listRate({ list, model, tokenClass, circumstances }: Asked): string | null {
  const found = list.rate(model, tokenClass, circumstances);
  return found ? decimalFromPico(found.rate) : null;
}
