import { z } from 'zod';
import {
  type Branding,
  FOOTER_CHARS_MAX,
  normalizeColor,
  ORG_NAME_CHARS_MAX,
} from '../../../domain/reports/branding.js';
import type { BrandingChange } from '../../../usecases/reports/branding.js';

export const BRANDING_PATH = '/api/v1/reports/branding';
export const LOGO_PATH = `${BRANDING_PATH}/logo`;
/** Digits of the logo's hash that make another logo another address. */
const HASH_DIGITS = 16;

const lineField = (charsMax: number) =>
  z
    .string()
    .trim()
    .max(charsMax, { error: `must have at most ${charsMax} characters` })
    .refine((text) => !/\p{Cc}/u.test(text), { error: 'must be one line of printable text' })
    .transform((text) => text || null)
    .optional()
    .meta({ type: 'string', maxLength: charsMax, description: 'Empty: the default' });

const colorField = z
  .string()
  .trim()
  .transform((text, context): string | null => {
    if (text === '') return null;
    const color = normalizeColor(text);
    if (color !== undefined) return color;
    context.addIssue({ code: 'custom', message: 'must be a colour such as #1F4FD8 or #14D' });
    return z.NEVER;
  })
  .optional()
  .meta({ type: 'string', description: 'Hex colour, three or six digits; empty: the default' });

/** The fields beside the file. */
export const brandingFields = z.strictObject({
  brand_color: colorField,
  org_name: lineField(ORG_NAME_CHARS_MAX),
  footer_text: lineField(FOOTER_CHARS_MAX),
  logo: z.literal('', { error: 'must be a file, or empty for no logo' }).optional(),
});

/** For the documents: the form with its file. */
export const brandingForm = z
  .object({
    logo: z.string().optional().meta({
      format: 'binary',
      description: 'PNG or SVG of at most 2 MiB; an empty text removes the logo',
    }),
    brand_color: colorField,
    org_name: lineField(ORG_NAME_CHARS_MAX),
    footer_text: lineField(FOOTER_CHARS_MAX),
  })
  .meta({ id: 'BrandingForm', description: 'Absent fields stay as they are' });

export const brandingSchema = z
  .strictObject({
    logo_url: z.string().meta({
      description: 'Where the logo is as PNG, from the address of this installation on; empty without one',
    }),
    brand_color: z.string().meta({ description: '#RRGGBB', example: '#1F4FD8' }),
    org_name: z.string().meta({ description: 'On the cover of reports' }),
    footer_text: z.string().meta({ description: 'At the foot of every page' }),
  })
  .meta({ id: 'Branding' });

export function changeOf(fields: z.output<typeof brandingFields>, file: Buffer | undefined): BrandingChange {
  return {
    brandColor: fields.brand_color,
    orgName: fields.org_name,
    footerText: fields.footer_text,
    logo: fields.logo === '' ? null : file,
  };
}

export function presentBranding(branding: Branding): z.output<typeof brandingSchema> {
  const { logo, brandColor, orgName, footerText } = branding;
  return {
    logo_url: logo ? `${LOGO_PATH}?v=${logo.sha256.slice(0, HASH_DIGITS)}` : '',
    brand_color: brandColor,
    org_name: orgName,
    footer_text: footerText,
  };
}
