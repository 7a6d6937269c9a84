import { LOGO_BYTES_MAX } from '../../../domain/reports/branding.js';
import { changeBranding, getBranding, openLogo } from '../../../usecases/reports/branding.js';
import { endpointGroup } from '../../endpoint.js';
import type { IncomingBody } from '../../pipeline/body.js';
import { receiveForm } from '../../pipeline/multipart.js';
import { validate } from '../../query.js';
import {
  BRANDING_PATH,
  brandingFields,
  brandingForm,
  brandingSchema,
  changeOf,
  LOGO_PATH,
  presentBranding,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Reports',
  access: {
    read: { scope: 'reports:read', workspace: 'refused' },
    write: { scope: 'reports:write', workspace: 'refused' },
  },
});

const hostOf = (baseUrl: string): string => new URL(baseUrl).host;

/** Keeps the file in memory: it is small, and drawn at once. */
async function receiveBranding(incoming: IncomingBody) {
  const chunks: Buffer[] = [];
  const { fields } = await receiveForm(incoming, {
    field: 'logo',
    maxBytes: LOGO_BYTES_MAX,
    chunkBytes: LOGO_BYTES_MAX,
    what: 'the logo',
    tooLargeRemedy: 'make it smaller',
    store: async (chunk) => void chunks.push(chunk),
  });
  const file = chunks.length === 0 ? undefined : Buffer.concat(chunks);
  return changeOf(validate(brandingFields, fields, 'body'), file);
}

routes.get(BRANDING_PATH, {
  operationId: 'getBranding',
  summary: 'The logo, colour, name and footer of reports',
  responses: { 200: { description: 'The branding, with its defaults', schema: brandingSchema } },
  async handle({ orgDb }, deps) {
    const branding = await getBranding(orgDb, hostOf(deps.settings.baseUrl()));
    return { status: 200, body: presentBranding(branding) };
  },
});

routes.post(BRANDING_PATH, {
  operationId: 'updateBranding',
  summary: 'Change the logo, colour, name or footer of reports',
  description:
    'Absent fields stay as they are, and an empty one takes the default. A logo is a PNG or an SVG of plain shapes; it is drawn again and kept as PNG.',
  streams: { 'multipart/form-data': brandingForm },
  idempotency: 'afterwards',
  drain: receiveBranding,
  responses: { 200: { description: 'The branding as it is now', schema: brandingSchema } },
  problems: [
    'invalid_multipart',
    'invalid_body',
    'invalid_logo',
    'payload_too_large',
    'unsupported_media_type',
  ],
  async handle(request, deps) {
    const { incoming, orgDb } = request;
    const change = await receiveBranding(incoming);
    await changeBranding(deps, orgDb, change, request, deps.nowMicros());
    const branding = await getBranding(orgDb, hostOf(deps.settings.baseUrl()));
    return { status: 200, body: presentBranding(branding) };
  },
});

routes.get(LOGO_PATH, {
  operationId: 'getBrandingLogo',
  summary: 'The logo as PNG',
  responses: { 200: { description: 'The logo', contentType: 'image/png' } },
  problems: ['not_found'],
  async handle({ orgDb }, deps) {
    const { sizeBytes, stream } = await openLogo(deps, orgDb);
    const headers = { 'Content-Length': String(sizeBytes) };
    return { status: 200, headers, content: { type: 'image/png', data: stream } };
  },
});

export const brandingEndpoints = routes.endpoints;
