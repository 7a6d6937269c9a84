import { z } from 'zod';

export const ticketSchema = z
  .strictObject({
    org_id: z.string(),
    claim_id: z.string(),
    subject: z.string(),
    body: z.string().meta({ description: 'Plain text' }),
    suggested_resolution: z.string(),
    evidence_refs: z.array(z.string()).meta({ description: 'Addresses of the files to attach' }),
    generated_at: z.string(),
  })
  .meta({ id: 'TicketDraft' });
