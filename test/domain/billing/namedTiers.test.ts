import { describe, expect, it } from 'vitest';
import { parseAzureMeter } from '../../../domain/billing/grammars/azureMeter.js';
import {
  parseBedrockCharge,
  parseBedrockUsageType,
} from '../../../domain/billing/grammars/bedrockUsageType.js';
import { parseGoogleSku } from '../../../domain/billing/grammars/googleSku.js';
import { BILLING_FORMATS, isTierNamed } from '../../../domain/billing/sources.js';

describe('the tier of a line of the ordinary tier', () => {
  it('is a fact of the bill where each line is labelled with a meter, a SKU or a usage type', () => {
    const named = BILLING_FORMATS.filter((format) => isTierNamed(format, null));
    expect(named).toEqual([
      'aws_ce_pages',
      'azure_query_pages',
      'azure_cost_details',
      'google_billing_export',
    ]);
    expect(parseAzureMeter('5.4 inp Gl 1M Tokens').serviceTier).toBe('standard');
    expect(parseAzureMeter('5.4 pp inp Gl 1M Tokens').serviceTier).toBe('priority');
    expect(parseBedrockUsageType('USE1-NovaPro-input-tokens').serviceTier).toBe('standard');
    expect(parseBedrockUsageType('USE1-NovaPro-input-tokens-priority').serviceTier).toBe('priority');
    expect(parseGoogleSku('Gemini 2.5 Flash GA Text Input - Predictions').serviceTier).toBe('standard');
    expect(parseGoogleSku('Gemini 2.5 Flash GA Text Input Priority - Predictions').serviceTier).toBe(
      'priority',
    );
  });

  it('is unknown on a CUR line whose model comes from the product’s attributes, and known by a usage type that was read', () => {
    const attributes = { model: 'Nova Pro', inferenceType: 'Input tokens' };
    const read = parseBedrockCharge('USE1-NovaPro-input-tokens', '', attributes);
    const unread = parseBedrockCharge('USE1-NovaPro-what-is-new', '', attributes);
    expect([read.recognised, unread.recognised]).toEqual([true, true]);
    for (const format of ['aws_cur2', 'aws_cur_legacy'] as const) {
      expect(isTierNamed(format, read.longContext)).toBe(true);
      expect(isTierNamed(format, unread.longContext)).toBe(false);
    }
  });

  it('is unknown in every format that has a column for the tier, or no place for it', () => {
    for (const format of ['plain_csv', 'focus', 'mistral_usage', 'xai_invoices', 'openai_pages'] as const)
      for (const longContext of [null, false, true]) expect(isTierNamed(format, longContext)).toBe(false);
  });
});
